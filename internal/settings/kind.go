package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pinwheel/mem"
)

// kind is how a variable is written and where its value goes.
type kind struct {
	syntax string
	parse  func(s *Settings, value string) error
}

func flag(field func(*Settings) *bool) kind {
	return kind{"y|n", func(s *Settings, value string) error {
		switch strings.ToLower(value) {
		case "y", "yes", "1", "on", "true":
			*field(s) = true
		case "n", "no", "0", "off", "false":
			*field(s) = false
		default:
			return fmt.Errorf("%q is neither y nor n", value)
		}
		return nil
	}}
}

func choice(field func(*Settings) *string, names ...string) kind {
	syntax := strings.Join(names, "|")
	return kind{syntax, func(s *Settings, value string) error {
		v := strings.ToLower(value)
		if !slices.Contains(names, v) {
			return fmt.Errorf("%q is none of %s", value, syntax)
		}
		*field(s) = v
		return nil
	}}
}

// bytes is a size; words are those of "auto" and "inf" that it allows.
func bytes(field func(*Settings) *int64, words ...string) kind {
	return kind{strings.Join(append(slices.Clone(words), "SIZE"), "|"), func(s *Settings, value string) error {
		v := strings.ToLower(value)
		if v == "auto" && slices.Contains(words, v) {
			*field(s) = Auto
			return nil
		}
		n, err := mem.ParseBytes(v)
		if err != nil {
			return err
		}
		*field(s) = n
		return nil
	}}
}

// number is an integer from low to high, or "auto" if words has it.
func number(field func(*Settings) *int64, low, high int64, words ...string) kind {
	syntax := strings.Join(append(slices.Clone(words), fmt.Sprintf("%d..%d", low, high)), "|")
	return kind{syntax, func(s *Settings, value string) error {
		if v := strings.ToLower(value); v == "auto" && slices.Contains(words, v) {
			*field(s) = Auto
			return nil
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not %s", value, syntax)
		}
		*field(s) = n
		return nil
	}}
}

// text is any string; y and n are not distinguished from file names here.
func text(field func(*Settings) *string, syntax string) kind {
	return kind{syntax, func(s *Settings, value string) error {
		*field(s) = value
		return nil
	}}
}

// share is a part of a whole.
func share(field func(*Settings) *float64) kind {
	return kind{"0%..100%", func(s *Settings, value string) error {
		v, err := ParseShare(value)
		if err == nil {
			*field(s) = v
		}
		return err
	}}
}

// ParseShare reads a part of a whole, in per cent or as a number from 0 to 1: .5% or 0.005. A larger number is in
// per cent: 5.
func ParseShare(value string) (float64, error) {
	number, isPercent := strings.CutSuffix(value, "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent || share > 1 {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("%q is not a share from 0%% to 100%%", value)
	}
	return share, nil
}

// FormatShare is the reverse of ParseShare: 5 %.
func FormatShare(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + " %" }
