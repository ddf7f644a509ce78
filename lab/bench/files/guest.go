package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/lab/kit"
)

// guestCmd measures in a guest of the test bed, in which lab/testbed/nfs.sh serves a file in several ways.
type guestCmd struct {
	Runs     string        `required:"" help:"What was measured, a line for each row of a round."`
	Bin      string        `default:"bin" help:"Directory of the commands."`
	File     string        `required:"" help:"The file that is served."`
	Mount    string        `required:"" help:"Directory to mount it at by NFS."`
	Dest     string        `required:"" help:"Where it is copied to, in a directory that rcopy and this command share."`
	Token    string        `required:"" help:"Token file of pinwheel serve."`
	Software []string      `sep:"none" help:"What else is measured, with its version."`
	Rounds   int           `default:"6" help:"Rounds of all rows."`
	Budget   time.Duration `default:"10m" help:"No row begins after this time."`
	Slice    time.Duration `default:"40ms" help:"How long each registration is measured in a round, at least."`
	Largest  command.Size  `default:"4M" help:"Bytes of the largest registration."`
}

// Run implements the command guest.
func (c *guestCmd) Run() (err error) {
	address := os.Getenv("TESTBED_ADDR")
	if address == "" {
		return errors.New("this is not a guest of the test bed: make bench-files-nfs")
	}
	h, err := kit.NewHead(kit.VersionIn(c.Bin), nil, "/proc/self/exe", filepath.Join(c.Bin, "pinwheel"))
	if err != nil {
		return err
	}
	h.Software = c.Software
	var runs state
	if err := runs.Open(c.Runs, h); err != nil {
		return err
	}
	defer runs.Close()
	if err := newToken(); err != nil {
		return err
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	dir, err := os.MkdirTemp(filepath.Dir(c.Dest), "bench-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{
		runCmd: &runCmd{Rounds: c.Rounds, Budget: c.Budget, Slice: c.Slice, Largest: c.Largest},
		tree:   &tree{dir}, lifetime: ctx,
	}
	defer func() { err = errors.Join(err, b.close()) }()
	all := registrationRows()
	for _, w := range c.ways(address) {
		all = append(all, row{name: w.row(), measure: func(ctx context.Context, _ *bench) ([]point, error) { return c.copy(ctx, w) }})
	}
	if err := b.measure(ctx, &runs, all); err != nil {
		return err
	}
	return runs.whole(all, c.Rounds)
}

// whole fails unless all rows of all rounds are measured.
func (s *state) whole(all []row, rounds int) error {
	for round := range rounds {
		for _, r := range all {
			if s.find(r.name, round) == nil {
				return fmt.Errorf("%s, round %d: %w: the same command goes on from here", r.name, round+1, errNotMeasured)
			}
		}
	}
	return nil
}

// guestWay is how a file is copied in a guest.
type guestWay struct {
	name                string
	connect, copy, part []string // commands; connect and part may be nil
	// took finds the seconds that the copy took in what its command prints: without those that it takes to start, and to
	// connect.
	took *regexp.Regexp
}

func (w guestWay) row() string { return "guest/" + w.name }

// Names of ways, as the page has them.
const (
	knfsdRDMA   = "knfsd, NFSv4.2 over RDMA"
	knfsdTCP    = "knfsd, NFSv4.2 over TCP"
	getRDMA     = "pinwheel get, RDMA"
	getTLS      = "pinwheel get, TLS"
	rcopy       = "rcopy"
	filesPort   = "7400"  // of pinwheel serve
	nfsRDMAPort = "20049" // of knfsd
)

var (
	saidByDD       = regexp.MustCompile(`copied, ([0-9.e+-]+) s,`)
	saidByPinwheel = regexp.MustCompile(`"seconds":([0-9.e+-]+)`)
	saidByRcopy    = regexp.MustCompile(`bytes in ([0-9.]+) seconds`)
)

// ways are those in which a file is copied. Their order is that of the page.
func (c *guestCmd) ways(address string) []guestWay {
	name := filepath.Base(c.File)
	nfs := func(way, options string) guestWay {
		return guestWay{
			name: way, took: saidByDD,
			connect: []string{"mount.nfs4", "-o", options + ",vers=4.2,ro", address + ":/", c.Mount},
			copy:    []string{"dd", "if=" + filepath.Join(c.Mount, name), "of=" + c.Dest, "bs=1M"},
			part:    []string{"umount", c.Mount}, // and so its pages are forgotten
		}
	}
	get := func(way, transport string) guestWay {
		return guestWay{name: way, took: saidByPinwheel, copy: []string{
			filepath.Join(c.Bin, "pinwheel"), "get", "--progress", "off", "--json", "--verify", "none", "--transport", transport,
			address + ":" + filesPort + "/" + name, c.Dest, "--token-file", c.Token, "--from", "tcp:" + address + ":0",
		}}
	}
	return []guestWay{
		nfs(knfsdRDMA, "rdma,port="+nfsRDMAPort),
		nfs(knfsdTCP, "proto=tcp,port=2049"),
		get(getRDMA, "rdma"),
		get(getTLS, "tcp"),
		{name: rcopy, took: saidByRcopy, copy: []string{"rcopy", c.File, address + ":" + c.Dest}},
	}
}

// tries is how often a copy is tried: RDMA takes longer to come up than a get waits, when the emulation is slow.
const tries = 5

// copy copies the file twice, and measures the second time: the first has the programs in the page cache.
func (c *guestCmd) copy(ctx context.Context, w guestWay) (points []point, err error) {
	for range 2 {
		var p point
		for range tries {
			if p, err = c.copyOnce(ctx, w); err == nil || ctx.Err() != nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		points = []point{p}
	}
	return points, nil
}

func (c *guestCmd) copyOnce(ctx context.Context, w guestWay) (p point, err error) {
	if err := os.Remove(c.Dest); err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, err
	}
	unix.Sync()
	before, err := sentPackets()
	if err != nil {
		return p, err
	}
	if w.connect != nil {
		if _, err := output(ctx, w.connect); err != nil {
			return p, err
		}
	}
	said, err := output(ctx, w.copy)
	if w.part != nil {
		_, parted := output(ctx, w.part)
		err = errors.Join(err, parted)
	}
	if err != nil {
		return p, err
	}
	if p.Seconds, err = w.seconds(said); err != nil {
		return p, err
	}
	after, err := sentPackets()
	if err != nil {
		return p, err
	}
	p.N, p.Packets = 1, after-before
	p.X, err = sameFile(c.File, c.Dest)
	return p, err
}

func (w guestWay) seconds(said []byte) (float64, error) {
	found := w.took.FindSubmatch(said)
	if found == nil {
		return 0, fmt.Errorf("%s does not say how long it took: %q", w.copy[0], said)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// output runs a command, and returns what it prints.
func output(ctx context.Context, args []string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return out, err
}

// sentPackets is how many packets the device has sent. Both ends of all connections are its own.
func sentPackets() (int64, error) {
	text, err := os.ReadFile("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// sameFile returns the size of two files in bytes. It fails if they differ.
func sameFile(one, other string) (int64, error) {
	a, err := os.ReadFile(one)
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile(other)
	if err == nil && !bytes.Equal(a, b) {
		err = fmt.Errorf("%s is not %s", other, one)
	}
	return int64(len(a)), err
}
