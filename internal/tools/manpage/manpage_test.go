package manpage

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestTextHasNoRequestsAndNoEscapes(t *testing.T) {
	got := text(".sp 9\nC:\\nx --flag\n'quoted")
	if want := "\\&.sp 9\nC:\\enx \\-\\-flag\n\\&'quoted"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type shown struct {
	Flag   string   `short:"f" placeholder:"FILE" help:"What it reads."`
	Switch bool     `negatable:"" help:"What it does."`
	Words  []string `arg:"" help:"More."`
}

func (shown) Help() string { return "All about it.\n\nExamples:\n  tool shown x" }

func TestPageHasWhatHelpHas(t *testing.T) {
	var cli struct {
		Shown shown `cmd:"" help:"Shows."`
		Group struct {
			Inner shown `cmd:"" help:"Shows more."`
		} `cmd:"" help:"Has commands."`
		Hidden struct{} `cmd:"" hidden:"" help:"Hides."`
	}
	k, err := kong.New(&cli, kong.Name("tool"), kong.Description("Tools things."))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Write(&b, k.Model,
		Page{ExitStatus: [][2]string{{"0", "Well."}}, SeeAlso: []string{"other(1)"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".TH TOOL 1\n", "tool \\- tools things\n", ".SS tool shown\nShows.\n", ".SS tool group inner\nShows more.\n",
		"All about it.\n", ".nf\ntool shown x\n.fi\n",
		".B \\-f, \\-\\-flag=FILE\nWhat it reads.\n", ".B \\-\\-[no\\-]switch\n", ".BR PINWHEEL_WATCH ",
		".B 0\nWell.\n", "other(1)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Hides") {
		t.Error("a hidden command is on the page")
	}
}
