package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pinwheel/comm/files"
	"pinwheel/internal/testwait"
)

var errLost = fmt.Errorf("read f: %w", files.ErrPeerGone)

// attemptsOf runs attempts that all lose the server, and returns how long that took.
func attemptsOf(t *testing.T, ctx context.Context, o Options, err error) (took time.Duration, got error) {
	t.Helper()
	if err := o.EnsureDefaults(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, got = o.attempts(ctx, new(files.Client), func(*files.Client, Options) (Result, error) { return Result{}, err })
	return time.Since(began), got
}

func TestWhoRetriesGivesUpInTime(t *testing.T) {
	refused := errors.New("another token")
	for name, c := range map[string]struct {
		lost   error
		redial func(ctx context.Context) (*files.Client, error)
		want   error
		took   time.Duration // at least; a second more is fine
	}{
		"nobody answers": {errLost, func(ctx context.Context) (*files.Client, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, files.ErrPeerGone, time.Minute},
		"it is lost again at once": {errLost, func(context.Context) (*files.Client, error) {
			return new(files.Client), nil
		}, files.ErrPeerGone, time.Minute},
		"it is full": {errLost, func(context.Context) (*files.Client, error) {
			return nil, fmt.Errorf("dial: %w", syscall.EUSERS)
		}, files.ErrPeerGone, time.Minute},
		"RDMA does not come back": {files.ErrNoRDMA, func(context.Context) (*files.Client, error) {
			return nil, files.ErrNoRDMA
		}, files.ErrNoRDMA, time.Minute},
		"it refuses":    {errLost, func(context.Context) (*files.Client, error) { return nil, refused }, refused, 0},
		"another fault": {syscall.ENOSPC, nil, syscall.ENOSPC, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.redial == nil {
					c.redial = func(context.Context) (*files.Client, error) { panic("nothing was lost") }
				}
				took, err := attemptsOf(t, t.Context(), Options{Retry: time.Minute, Redial: c.redial}, c.lost)
				if !errors.Is(err, c.want) || took < c.took || took > c.took+time.Second {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

func TestWhoRetriesEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		redial := func(ctx context.Context) (*files.Client, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		took, err := attemptsOf(t, ctx, Options{Retry: time.Hour, Redial: redial}, errLost)
		if !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// What several attempts have done is told once.
func TestAttemptsAreCountedTogether(t *testing.T) {
	var told []error
	o := Options{
		Retry:  time.Hour,
		Redial: func(context.Context) (*files.Client, error) { return new(files.Client), nil },
		Failed: func(err error) { told = append(told, err) },
	}
	if err := o.EnsureDefaults(); err != nil || !o.Resume {
		t.Fatal(err, o.Resume)
	}
	done := []Result{
		{Files: 3, Bytes: 30, Directories: 2, Skipped: 1, Failed: 1, Unchanged: 5},
		{Files: 4, Bytes: 40, Directories: 2, Skipped: 1, Failed: 1, Unchanged: 8, ResumedBytes: 7, Retries: 1},
	}
	attempt := 0
	got, err := o.attempts(t.Context(), new(files.Client), func(_ *files.Client, o Options) (Result, error) {
		r := done[attempt]
		attempt++
		o.Meter.TotalBytes.Add(100)
		o.Meter.Bytes.Add(50 * int64(attempt))
		o.Failed(syscall.EACCES)
		if made := o.made.note("d", attempt == 1); !made {
			t.Error("a directory that the first attempt has made counts as one that was there")
		}
		if attempt == 1 {
			return r, errLost
		}
		return r, nil
	})
	want := Result{
		Files: 7, Bytes: 70, Directories: 2, Skipped: 1, Failed: 1, Unchanged: 5, ResumedBytes: 7, Retries: 1, Reconnects: 1,
	}
	if got != want || err != nil || len(told) != 1 {
		t.Errorf("%+v, %v, told %v", got, err, told)
	}
	if m := o.Meter; m.TotalBytes.Load() != 100 || m.Bytes.Load() != 100 {
		t.Errorf("%d bytes of %d", m.Bytes.Load(), m.TotalBytes.Load())
	}
}

func TestRetryOptionsThatMakeNoSense(t *testing.T) {
	redial := func(context.Context) (*files.Client, error) { return nil, nil }
	for _, o := range []Options{
		{Retry: -1, Redial: redial}, {Retry: time.Second}, {Retry: time.Second, Redial: redial, Verify: files.NoSum},
	} {
		if err := o.EnsureDefaults(); err == nil {
			t.Errorf("%+v", o)
		}
	}
}

// A source that was replaced while the server was away is copied anew, and nothing of the old one is left.
func TestSourceThatIsAnotherOneAfterTheServerWasLost(t *testing.T) {
	testwait.Bound(t)
	dir, address := serveAt(t)
	here := t.TempDir()
	before, after := random(8<<20), random(9<<20)
	put(t, filepath.Join(dir, "f"), before, 0o644)
	c := dial(t, address)
	o := Options{Retry: time.Minute, Redial: func(context.Context) (*files.Client, error) {
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			return nil, err
		}
		put(t, filepath.Join(dir, "f"), after, 0o644)
		return dial(t, address), nil
	}}
	if err := o.EnsureDefaults(); err != nil {
		t.Fatal(err)
	}
	attempt := 0
	r, err := o.attempts(t.Context(), c, func(c *files.Client, o Options) (Result, error) {
		if attempt++; attempt > 1 {
			return getOnce(t.Context(), c, "f", filepath.Join(here, "f"), false, o)
		}
		info, err := c.Stat(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(here, partialName("f", resumeKey("f", info.Size(), string(info.ETag())))), before[:5<<20], 0o600)
		return Result{}, errLost
	})
	if err != nil || r.Files != 1 || r.ResumedBytes != 0 || r.Reconnects != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, filepath.Join(here, "f"), after, 0o644)
	if left, _ := filepath.Glob(here + "/.*partial"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
