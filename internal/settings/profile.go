package settings

import (
	"errors"
	"os"
	"path/filepath"
)

// ProfileDir returns the directory that PINWHEEL_PROFILE names, or "" if there are to be no profiles. It fails if that
// is left to the user's home directory, and there is none.
func (s *Settings) ProfileDir() (string, error) {
	switch s.Profile {
	case "n", "":
		return "", nil
	case "y":
		return stateDir()
	}
	return filepath.Abs(s.Profile)
}

// stateDir follows the XDG Base Directory Specification.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pinwheel"), nil
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "pinwheel"), nil
	}
	return "", errors.New("neither XDG_STATE_HOME nor HOME names a directory")
}
