package messages

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kinds of messages that are collected.
type kinds uint

const (
	lines    kinds = 1 << iota // what is printed as a line of its own
	errs                       // errors that are made
	exported                   // errors that have an exported name
)

// covered says what is collected from a package.
type covered struct {
	what      kinds
	sentences []string // functions whose sentences are messages, which they return or store; "*": all
	not       []string // files whose errors no user sees
}

func (c covered) isMessage(function string) bool {
	return slices.Contains(c.sentences, "*") || slices.Contains(c.sentences, function)
}

// packages are those whose errors reach who runs a program of MPI, pinwheel run, the commands for files or a program that
// imports the Go API. From all other packages come the lines that they print.
var packages = map[string]covered{
	".":                           {what: lines | errs},
	"mem":                         {what: lines | exported},
	"verbs":                       {what: lines | errs},
	"verbs/open":                  {what: lines | errs},
	"verbs/rdma":                  {what: lines | errs},
	"verbs/rdma/internal/ibv":     {what: lines | errs},
	"verbs/uring":                 {what: lines | errs},
	"verbs/mlock":                 {what: lines | errs},
	"regcache":                    {what: lines | errs, not: []string{"verify.go"}}, // which tests call
	"vmwatch":                     {what: lines | errs, not: []string{"selftest.go"}},
	"vmwatch/watchd":              {what: lines | errs},
	"internal/uffd":               {what: lines | errs},
	"placement":                   {what: lines | errs},
	"helper":                      {what: lines | errs},
	"profile":                     {what: lines | errs},
	"comm/vmmc":                   {what: lines | exported},
	"comm/vmmc/broker":            {what: lines | exported},
	"internal/node":               {what: lines | errs},
	"comm/vmmc/internal/identity": {what: lines | exported},
	"comm/vmmc/internal/protocol": {what: lines | exported},
	"internal/engine":             {what: lines | errs, sentences: []string{"discard"}},
	"internal/fault":              {what: lines | errs},
	"internal/settings":           {what: lines | errs, sentences: []string{"Load", "renamed", "unknown"}, not: []string{"page.go"}},
	"internal/tools/launch":       {what: lines | errs, sentences: []string{"*"}},
	"internal/tools/record":       {what: lines | errs},
	"internal/report":             {what: lines, sentences: []string{"keptLine"}},
	"internal/tools/jobreport":    {what: lines | errs},
	"comm/peer":                   {what: lines | errs},
	"internal/tools/compare":      {what: lines | errs},
	"internal/tools/command":      {what: lines | errs},
	"cmd/pinwheel":                {what: lines | errs, not: []string{"bench.go", "benchfiles.go"}}, // which measure Pinwheel itself
	"comm/files":                  {what: lines | errs},
	"comm/files/transfer":         {what: lines | errs},
	"comm/files/internal/newfile": {what: lines | errs},
	"comm/files/internal/unsized": {what: lines | errs},
	"mpishim/server":              {what: lines | errs},
	"mpishim/watch/capi":          {what: lines | errs},
}

// unseen are directories of what no user of these runs: tests, and commands for those who develop Pinwheel.
var unseen = []string{"cmd/nasreplay", "cmd/pinwheel/bench", "lab", "results", "docs", "bin", "out",
	"internal/testwait", "mpishim/testing", "mpishim/example"}

// directories returns the directories of the module that have source code, by their paths below root.
func directories(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name := d.Name(); dir != "." && (name == "testdata" || name[0] == '.') || slices.Contains(unseen, dir) ||
			strings.HasSuffix(dir, "test") {
			return fs.SkipDir
		}
		dirs = append(dirs, dir)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// collect returns where each message is that the source code has.
func collect(t *testing.T, root string) map[string]string {
	t.Helper()
	at := map[string]string{}
	dirs := directories(t, root)
	for dir := range packages {
		if !slices.Contains(dirs, dir) {
			t.Errorf("there is no directory %s", dir)
		}
	}
	for _, dir := range dirs {
		c, ok := packages[dir]
		if !ok {
			c.what = lines
		}
		for _, s := range append(goMessages(t, root, dir, c), cMessages(t, root, dir)...) {
			at[s.text] = s.at
		}
	}
	return at
}

// handled are errors that our own code acts on, and that nobody is shown.
var handled = []string{
	"call did not return",
	"no PROCMAP_QUERY",
	"no process of the job has loaded these programs",
	"node: another process of the job holds the lock",
	"node: the member has left",
	"not open",
	"nothing is managed any more",
	"range cannot be watched",
	"regcache: this memory is registered for each use, and not kept registered",
	"range is known under another region",
	"region changed while it was registered",
	"settings: default of PINWHEEL_…: …", // which a test would find
	"the process that writes the profile has gone",
	"the watch of mappings is being opened",
}
