package messages

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is where messages are explained.
const page = "docs/troubleshooting.md"

// An entry is one row of the page.
type entry struct {
	id              string
	messages        []string
	cause, remedy   string
	line            int
	saysThereIsNone bool // that it is no fault, so there is nothing to do
}

var (
	anchor = regexp.MustCompile(`^<a id="([a-z0-9-]+)"></a>`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

// entries returns the rows of the page that have an anchor.
func entries(t *testing.T, file string) (found []entry) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		m := anchor.FindStringSubmatch(strings.TrimSpace(cells[0]))
		if m == nil {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| message ") {
				t.Errorf("%s:%d: a row without an anchor", file, n+1)
			}
			continue
		}
		e := entry{id: m[1], line: n + 1}
		for _, q := range quoted.FindAllStringSubmatch(cells[0], -1) {
			e.messages = append(e.messages, q[1])
		}
		if len(cells) > 1 {
			e.cause = strings.TrimSpace(cells[1])
			e.saysThereIsNone = strings.HasPrefix(e.cause, "No fault")
		}
		if len(cells) > 2 {
			e.remedy = strings.TrimSpace(cells[2])
		}
		found = append(found, e)
	}
	return found
}

func TestEveryMessageIsExplained(t *testing.T) {
	printed, explained := collect(t, "../.."), map[string]bool{}
	for _, e := range entries(t, "../../"+page) {
		for _, m := range e.messages {
			explained[m] = true
		}
	}
	if len(printed) < 250 {
		t.Fatalf("only %d messages were found in the source code", len(printed))
	}
	for text, at := range printed {
		if !explained[text] && !slices.Contains(handled, text) {
			t.Errorf("%s: %q is not explained in %s", at, text, page)
		}
	}
}

func TestNothingIsExplainedThatNobodyPrints(t *testing.T) {
	printed := collect(t, "../..")
	for _, e := range entries(t, "../../"+page) {
		for _, m := range e.messages {
			if printed[m] == "" {
				t.Errorf("%s:%d: nobody prints %q", page, e.line, m)
			}
		}
	}
	for _, text := range handled {
		if printed[text] == "" {
			t.Errorf("nothing in the source code says %q", text)
		}
	}
}

func TestEveryEntryHasACauseAndARemedy(t *testing.T) {
	ids, messages := map[string]int{}, map[string]int{}
	for _, e := range entries(t, "../../"+page) {
		if at, twice := ids[e.id]; twice {
			t.Errorf("%s:%d: the anchor %s is that of line %d", page, e.line, e.id, at)
		}
		ids[e.id] = e.line
		if len(e.messages) == 0 || e.cause == "" || e.remedy == "" && !e.saysThereIsNone {
			t.Errorf("%s:%d: %s lacks a message, a cause or what to do", page, e.line, e.id)
		}
		for _, m := range e.messages {
			if at, twice := messages[m]; twice {
				t.Errorf("%s:%d: %q is explained in line %d", page, e.line, m, at)
			}
			messages[m] = e.line
		}
	}
}

// What is collected is what is printed, in the forms that the source code has it.
func TestMessagesAreFoundInAllForms(t *testing.T) {
	found := map[string]bool{}
	for _, s := range goMessages(t, ".", "testdata", covered{what: lines | errs, sentences: []string{"stored"}}) {
		found[s.text] = true
	}
	for _, s := range cMessages(t, ".", "testdata") {
		found[s.text] = true
	}
	want := []string{"a warning of …", "joined of three constant parts: …", "an error of … bytes", "made by errors.New", "a sentence that is stored",
		"C prints …; and joins literals", "one of two is chosen"}
	for _, w := range want {
		if !found[w] {
			t.Errorf("%q is not found", w)
		}
		delete(found, w)
	}
	for text := range found {
		t.Errorf("%q is no message", text)
	}
}
