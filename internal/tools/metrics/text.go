package metrics

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"pinwheel/internal/outfile"
)

// Write writes the metrics as they are now in the text format of Prometheus.
func Write(w io.Writer, g prometheus.Gatherer) error {
	families, err := g.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile replaces a file by the metrics as they are now, by rename(2): node_exporter never reads half of it.
func WriteFile(path string, g prometheus.Gatherer, options ...outfile.Option) error {
	return outfile.Write(path, func(w io.Writer) error { return Write(w, g) }, options...)
}

// KeepFile renews a file every interval until the context ends, and then removes it: what a file says that nobody
// renews would stay true for node_exporter for ever. The caller handles signals, and ends the context. Once there is
// a file, what fails later is passed to warn, and tried again.
func KeepFile(ctx context.Context, path string, g prometheus.Gatherer, every time.Duration, warn func(error)) error {
	if err := WriteFile(path, g, outfile.WithoutSignals); err != nil {
		return err
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		case <-ticks.C:
			if err := WriteFile(path, g, outfile.WithoutSignals); err != nil {
				warn(err)
			}
		}
	}
}
