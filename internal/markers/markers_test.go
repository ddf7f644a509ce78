package markers

import "testing"

var m = Markers{"<!-- x -->\n", "<!-- /x -->\n"}

func TestOnlyWhatIsBetweenTheMarkersChanges(t *testing.T) {
	const doc = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
	got, err := m.Replace(doc, "new\n")
	if want := "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if text, err := m.Between(got); err != nil || text != "new\n" {
		t.Errorf("between: %q, %v", text, err)
	}
}

func TestMissingMarkersAreAnError(t *testing.T) {
	for _, doc := range []string{"", "<!-- x -->\n", "<!-- /x -->\n", "<!-- /x -->\n<!-- x -->\n"} {
		if got, err := m.Replace(doc, "new"); err == nil {
			t.Errorf("%q became %q", doc, got)
		}
		if _, err := m.Between(doc); err == nil {
			t.Errorf("%q has something between its markers", doc)
		}
	}
}
