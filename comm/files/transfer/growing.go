package transfer

import (
	"context"

	"pinwheel/comm/files"
)

// allowGrowth has a file of the server be read as of its start, whatever is appended to it, unless that is an error.
func (o *Options) allowGrowth(ctx context.Context, f *files.File) error {
	if o.Strict {
		return nil
	}
	_, err := f.AllowGrowth(ctx)
	return err
}

// grew tells whether a file of the server has more than was copied.
func (o *Options) grew(ctx context.Context, f *files.File) (bool, error) {
	if o.Strict {
		return false, nil // that was an error
	}
	return f.AllowGrowth(ctx)
}

// grew warns of a file that was copied as of its start.
func (t *tree) grew(name string) {
	t.grown.Inc()
	t.options.Warn(warnGrew(name))
}

func warnGrew(name string) string {
	return name + ": grew while it was copied: the copy has what it had at the start"
}
