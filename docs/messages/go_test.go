package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A source is one message in the source code: its text, with … for what varies, and where it is.
type source struct{ text, at string }

// sinks are the functions that print a line for the user, and which of their arguments is the line; -1 is the last.
var sinks = map[string]int{"Warn": -1, "warn": 0, "warnOfPeer": 0, "Note": 0, "Fault": 1, "watchWarn": 0, "tellOnce": -1,
	"logStderr": 0, "console.Write": 0}

// makers are the functions that make an error of a text, which is their first argument.
var makers = map[string]bool{"errors.New": true, "fmt.Errorf": true, "command.Usagef": true}

// reader collects the messages of one Go file.
type reader struct {
	where     string // the file
	what      kinds
	sentences func(function string) bool // whether its sentences are messages
	constants map[string]string          // of the package
	found     []source
}

// goMessages returns the messages of the Go files of one directory.
func goMessages(t *testing.T, root, dir string, c covered) (found []source) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files, constants := map[string]*ast.File{}, map[string]string{}
	for _, name := range names {
		where, err := filepath.Rel(root, name)
		if err != nil || strings.HasSuffix(name, "_test.go") || slices.Contains(c.not, filepath.Base(name)) {
			continue
		}
		if files[where], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
		ast.Inspect(files[where], func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				addConstants(constants, d)
			}
			return true
		})
	}
	for where, f := range files {
		r := reader{where: where, what: c.what, sentences: c.isMessage, constants: constants}
		for _, d := range f.Decls {
			r.declaration(d)
		}
		found = append(found, r.found...)
	}
	return found
}

func addConstants(constants map[string]string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for i, value := range v.Values {
			if l, ok := value.(*ast.BasicLit); ok && l.Kind == token.STRING {
				constants[v.Names[i].Name], _ = strconv.Unquote(l.Value) // the parser has seen it
			}
		}
	}
}

func (r *reader) declaration(d ast.Decl) {
	if g, ok := d.(*ast.GenDecl); ok && r.what&exported != 0 {
		for _, s := range g.Specs {
			if v, ok := s.(*ast.ValueSpec); ok && v.Names[0].IsExported() {
				r.node(v, errs, false)
			}
		}
		return
	}
	f, isFunc := d.(*ast.FuncDecl)
	r.node(d, r.what, isFunc && r.sentences(f.Name.Name))
}

// node adds the messages below a node.
func (r *reader) node(n ast.Node, what kinds, sentences bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			r.call(c, what)
		}
		if e, ok := n.(ast.Expr); ok && sentences {
			if text, literal := r.format(e); literal && strings.Count(text, " ") >= 3 {
				r.add(text)
				return false // its parts are none
			}
		}
		return true
	})
}

func (r *reader) add(format string) {
	if text := plainText(format); text != "" {
		r.found = append(r.found, source{text, r.where})
	}
}

func (r *reader) call(c *ast.CallExpr, what kinds) {
	name := nameOf(c.Fun)
	if len(c.Args) == 0 {
		return
	}
	if makers[name] && what&errs != 0 && !beginsWithAnother(c) {
		text, _ := r.filledIn(c)
		r.add(text)
	}
	at, ok := sinks[name]
	if !ok {
		at, ok = sinks[name[strings.LastIndexByte(name, '.')+1:]]
	}
	if at < 0 {
		at = len(c.Args) - 1
	}
	if ok && what&lines != 0 && at < len(c.Args) {
		text, _ := r.format(c.Args[at])
		r.add(text)
	}
}

// beginsWithAnother reports whether an error begins with one of our own that has a name: a reader finds it by that.
func beginsWithAnother(c *ast.CallExpr) bool {
	text, ok := c.Args[0].(*ast.BasicLit)
	if !ok || len(c.Args) < 2 || !strings.HasPrefix(text.Value, `"%w`) {
		return false
	}
	name := nameOf(c.Args[1])
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.HasPrefix(last, "Err") || strings.HasPrefix(name, "err") && name != "err"
}

// nameOf returns the name of what is called, as it is written.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	}
	return ""
}

// format returns the format of an expression, with %v for what it does not know, and whether literals are in it.
func (r *reader) format(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s, true
		}
	case *ast.Ident:
		if s, ok := r.constants[e.Name]; ok {
			return s, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x, a := r.format(e.X)
			y, b := r.format(e.Y)
			return x + y, a || b
		}
	case *ast.CallExpr:
		if name := nameOf(e.Fun); name == "fmt.Sprintf" || name == "fmt.Errorf" || name == "C.CString" {
			return r.filledIn(e)
		}
	}
	return "%v", false
}

// filledIn returns the format of a call of fmt.Sprintf or its like, with those arguments filled in that are constants.
func (r *reader) filledIn(c *ast.CallExpr) (text string, literal bool) {
	text, literal = r.format(c.Args[0])
	next := 1
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		if v == "%%" || next >= len(c.Args) {
			return v
		}
		arg, known := r.format(c.Args[next])
		next++
		if known && !strings.Contains(v, "[") {
			return arg
		}
		return v
	}), literal
}

var (
	verb = regexp.MustCompile(`%%|%[-+# 0]*(\*|\d+)?(\.(\*|\d+))?(\[\d+\])?(l|ll|z)?[a-zA-Z]`)
	gaps = regexp.MustCompile(`…[…\s]*…`)
	word = regexp.MustCompile(`[A-Za-z]{2,}`)
)

// plainText returns a message as the page writes it, with … for what varies. It is empty for one word, or none: that only
// says whose the message behind it is.
func plainText(format string) string {
	s := verb.ReplaceAllStringFunc(format, func(v string) string {
		if v == "%%" {
			return "%"
		}
		return "…"
	})
	s = strings.TrimPrefix(strings.TrimSuffix(s, "\n"), "pinwheel: ")
	s = strings.TrimSpace(gaps.ReplaceAllString(s, "…"))
	if len(word.FindAllString(s, 2)) < 2 {
		return ""
	}
	return s
}
