package settings

import (
	"path/filepath"
	"testing"
)

func TestProfilesAreWhereTheUserWantsThem(t *testing.T) {
	for _, c := range []struct{ value, state, home, want string }{
		{"n", "/state", "/home/me", ""},
		{"", "/state", "/home/me", ""},
		{"y", "/state", "/home/me", "/state/pinwheel"},
		{"y", "relative", "/home/me", "/home/me/.local/state/pinwheel"},
		{"y", "", "/home/me", "/home/me/.local/state/pinwheel"},
		{"/scratch/p", "", "", "/scratch/p"},
	} {
		t.Setenv("XDG_STATE_HOME", c.state)
		t.Setenv("HOME", c.home)
		if got, err := (&Settings{Profile: c.value}).ProfileDir(); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if got, err := (&Settings{Profile: "p"}).ProfileDir(); err != nil || !filepath.IsAbs(got) {
		t.Errorf("a relative directory: %q, %v", got, err)
	}
	t.Setenv("HOME", "")
	if got, err := (&Settings{Profile: "y"}).ProfileDir(); err == nil {
		t.Errorf("nowhere: %q", got)
	}
}
