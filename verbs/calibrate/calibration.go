package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"pinwheel/internal/outfile"
	"pinwheel/verbs"
)

// Version of the file format; a reader refuses others.
const Version = 1

const format = "pinwheel-calibration"

// Calibration is the cost of registration with one provider on one machine.
type Calibration struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Provider string `json:"provider"`
	// Source is "measured", or says where the figures come from.
	Source    string `json:"source"`
	Machine   string `json:"machine,omitempty"` // processor, processors, memory
	Kernel    string `json:"kernel,omitempty"`  // release
	Date      string `json:"date"`              // YYYY-MM-DD
	PageBytes uint64 `json:"page_bytes"`
	// BetweenBytes is Options.BetweenBytes.
	BetweenBytes uint64 `json:"between_bytes,omitempty"`
	// Beside is Options.Beside.
	Beside int `json:"beside,omitempty"`
	// Touched memory is mapped in when it is registered.
	Touched Pair `json:"touched"`
	// Untouched memory is faulted in by the registration.
	Untouched *Pair `json:"untouched,omitempty"`
	// Huge memory consists of transparent huge pages; per 4 KiB page.
	Huge *Pair `json:"huge,omitempty"`
}

// Pair are the two operations on one kind of memory.
type Pair struct {
	Register   Fit `json:"register"`
	Deregister Fit `json:"deregister"`
}

// Costs returns the fitted model alone.
func (p Pair) Costs() verbs.Costs {
	return verbs.Costs{Register: p.Register.Cost, Deregister: p.Deregister.Cost}
}

// Costs returns the model for memory that is mapped in.
func (c *Calibration) Costs() verbs.Costs { return c.Touched.Costs() }

// maxBytes bounds a calibration: more is something else.
const maxBytes = 1 << 20

// Read reads a calibration. It fails for other formats and versions, and for
// a model that no operation can have.
func Read(r io.Reader) (*Calibration, error) {
	c := new(Calibration)
	err := json.NewDecoder(io.LimitReader(r, maxBytes)).Decode(c)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("not a calibration: it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("not a calibration: it is cut off, or too large")
	case err != nil:
		return nil, fmt.Errorf("not a calibration: %w", err)
	}
	if c.Format != format {
		return nil, fmt.Errorf("not a calibration: format is %q, want %q", c.Format, format)
	}
	if c.Version != Version {
		return nil, fmt.Errorf("calibration of version %d; this program reads version %d", c.Version, Version)
	}
	for _, p := range []*Pair{&c.Touched, c.Untouched, c.Huge} {
		if p == nil {
			continue
		}
		for _, cost := range []verbs.Cost{p.Register.Cost, p.Deregister.Cost} {
			if cost.PerPageNs < 0 || cost.FixedNs < 0 || cost == (verbs.Cost{}) {
				return nil, errors.New("calibration has a negative cost, or none")
			}
		}
	}
	return c, nil
}

// Write writes c as indented JSON.
func (c *Calibration) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// Load reads a calibration file.
func Load(path string) (*Calibration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Save writes a calibration file. A file that was there is replaced whole, or stays.
func (c *Calibration) Save(path string) error { return outfile.Write(path, c.Write) }
