package settings

import (
	"slices"
	"testing"
)

func TestVariablesAreOptionsWithTheValuesOfTheTable(t *testing.T) {
	all := Variables()
	if len(all) != len(table) {
		t.Fatalf("%d variables, table has %d", len(all), len(table))
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.Option] || v.Doc == "" {
			t.Errorf("%+v: option twice, or without documentation", v)
		}
		seen[v.Option] = true
		if err := Check(v.Name, v.Default); err != nil && v.Default != "" {
			t.Errorf("default of %s: %v", v.Name, err)
		}
		switches := []string{"PINWHEEL_DISABLE", "PINWHEEL_STATS", "PINWHEEL_PROFILE", "PINWHEEL_PROFILE_FORCE",
			"PINWHEEL_WATCH_WAIT"}
		if want := slices.Contains(switches, v.Name); v.Switch() != want {
			t.Errorf("%s: Switch() = %v", v.Name, v.Switch())
		}
	}
	if !seen["idle-policy"] {
		t.Error("PINWHEEL_IDLE_POLICY is not the option idle-policy")
	}
}

func TestCheckRefusesWhatLoadWouldIgnore(t *testing.T) {
	for name, value := range map[string]string{
		"PINWHEEL_WINDOW": "9", "PINWHEEL_POLICY": "best", "PINWHEEL_TRESHOLD": "1M", "PINWHEEL_DISABLE": "maybe",
	} {
		if Check(name, value) == nil {
			t.Errorf("%s=%s was accepted", name, value)
		}
	}
	if err := Check("PINWHEEL_POLICY", "Paper"); err != nil {
		t.Error(err)
	}
}
