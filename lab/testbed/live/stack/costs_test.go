package stack

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/launch"
)

// zeroCopy matches where UCX begins to send from the buffer, in the words of its versions: of 1.13 by its thresholds,
// of later ones by the table of UCX_PROTO_INFO.
var zeroCopy = regexp.MustCompile(`tag_send: .*\.\.(\d+)\.\.<egr/zcopy>|\| +(\S+?)\.\.\S+ \| (?:multi-frag )?eager zero-copy`)

// Without the costs of a registration that it is given, UCX copies what its own cache would let it send from the buffer.
func TestUCXSendsFromTheThresholdOnWithoutACopy(t *testing.T) {
	testwait.Bound(t)
	ucx, err := Named("openmpi-ucx")
	if err != nil {
		t.Fatal(err)
	}
	d, program := need(t, ucx)
	info, err := exec.LookPath("ucx_info")
	if err != nil {
		t.Skipf("%v (apt-get install ucx-utils)", err)
	}
	library, err := filepath.Abs("../../../../bin/libpinwheel.so")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ setting, want string }{{"PINWHEEL_POLICY=pinwheel", "16384"}, {"PINWHEEL_POLICY=on-demand", ""}} {
		plan, err := launch.Make(launch.Request{
			Command: []string{program}, Library: library, // ucx_info is no MPI program
			Environ: slices.Concat(Environ(), ucx.Alone(d), []string{"UCX_PROTO_INFO=y", c.setting}),
		})
		if err != nil || plan.Plain != "" {
			t.Fatalf("%v, %s (make build)", err, plan.Plain)
		}
		cmd := exec.Command(info, "-e", "-u", "t", "-D", "net")
		cmd.Env = plan.Environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := ""
		if m := zeroCopy.FindSubmatch(out); m != nil {
			got = string(m[1]) + string(m[2])
		}
		if got == "16K" {
			got = "16384"
		}
		if got != c.want {
			t.Errorf("%s: zero copy from %q on, want %q\n%s", c.setting, got, c.want, out)
		}
	}
}
