// Package replaytest makes traces from scripts, for tests.
package replaytest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/trace"
)

// script writes a trace from text, one line for each rank:
//
//	0: cpu 10us; isend 1 64K a req=1; wait 1; barrier
//	1: recv 0 64K b; barrier; cut
//
// Buffers are named a to z, 16 MiB apart, and may have an offset: a+4K. The
// peer any is any source, tag=any any tag; none is no peer, out one outside of the trace. Every rank ends with finalize,
// or without it after cut. A line "comm 1: 0 1" declares a communicator, "comm 1 5: 0 1" one whose name is 5. The
// number of a call in its rank is its line number. "leftout 2": the trace lacks two calls of this rank.
// "place 4 2 10ms": it ran with one other rank on four processors, and changes of mappings were noticed after 10 ms.
type script struct {
	t     testing.TB
	file  *trace.Writer
	comms map[int32][]int32
	names map[int32]uint64
}

// Trace returns the trace that a script describes. It ends the test if the script is wrong.
func Trace(t testing.TB, text string) *trace.File {
	t.Helper()
	f, err := TryTrace(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TryTrace is Trace for a test that expects the writer of traces to fail.
func TryTrace(t testing.TB, text string) (_ *trace.File, err error) {
	s := script{t: t, comms: map[int32][]int32{}, names: map[int32]uint64{}}
	var ranks []string
	for line := range strings.Lines(text) {
		head, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if id, ok := strings.CutPrefix(head, "comm "); ok {
			id, name, _ := strings.Cut(id, " ")
			c := int32(Int(t, id))
			if name != "" {
				s.names[c] = uint64(Int(t, name))
			}
			for _, m := range strings.Fields(rest) {
				s.comms[c] = append(s.comms[c], peerOf(t, m))
			}
			continue
		}
		if head != "" {
			ranks = append(ranks, rest)
		}
	}
	path := filepath.Join(t.TempDir(), "t.pwt")
	if s.file, err = trace.Create(path, trace.Header{Program: "script", Ranks: len(ranks)}); err != nil {
		return nil, err
	}
	for i := range ranks {
		s.comms[0] = append(s.comms[0], int32(i))
	}
	for i, calls := range ranks {
		if err := s.rank(i, calls); err != nil {
			return nil, err
		}
	}
	if err := s.file.Close(); err != nil {
		return nil, err
	}
	f, err := trace.Open(path)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func (s *script) rank(i int, calls string) error {
	w, err := s.file.Rank(i)
	if err != nil {
		return err
	}
	for id, members := range s.comms {
		for _, m := range members {
			if m == int32(i) {
				if err := w.DefineComm(id, s.names[id], members); err != nil {
					return err
				}
			}
		}
	}
	var ns int64
	line, sites := uint32(0), map[string]uint64{}
	for call := range strings.SplitSeq(calls+"; finalize", ";") {
		f := strings.Fields(call)
		if len(f) == 0 {
			continue
		}
		if f[0] == "cut" {
			return nil
		}
		if f[0] == "cpu" {
			d, err := time.ParseDuration(f[1])
			if err != nil {
				return err
			}
			ns += d.Nanoseconds()
			continue
		}
		if f[0] == "leftout" {
			if err := w.LeaveOut("calls", uint64(Int(s.t, f[1]))); err != nil {
				return err
			}
			continue
		}
		if f[0] == "place" {
			d, err := time.ParseDuration(f[3])
			p := trace.Place{Processors: Int(s.t, f[1]), Ranks: Int(s.t, f[2]), WatchNs: d.Nanoseconds()}
			if err := errors.Join(err, w.DefinePlace(p)); err != nil {
				return err
			}
			continue
		}
		line++
		if sites[call] == 0 { // the same text is the same call site
			sites[call] = uint64(len(sites) + 1)
		}
		site, err := w.Stack([]uint64{sites[call], 0x1000})
		if err != nil {
			return err
		}
		for _, r := range s.records(f) {
			r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs, r.Line, r.Stack = ns, ns+100, ns, ns+100, line, site
			if err := w.Append(&r); err != nil {
				return err
			}
		}
		ns += 100
	}
	return nil
}

// records are what one call leaves.
func (s *script) records(f []string) []trace.Record {
	r := trace.Record{Peer: trace.NoPeer}
	var args []string
	for _, a := range f[1:] {
		k, v, isOption := strings.Cut(a, "=")
		switch {
		case !isOption:
			args = append(args, a)
		case k == "tag" && v == "any":
			r.Tag = trace.AnyTag
		case k == "tag":
			r.Tag = int32(Int(s.t, v))
		case k == "comm":
			r.Comm = int32(Int(s.t, v))
		case k == "req":
			r.Req = uint32(Int(s.t, v))
		}
	}
	with := func(op trace.Op, d trace.Dir, peer, bytes, buf string) trace.Record {
		x := r
		x.Op, x.Dir = op, d
		x.Peer, x.Bytes, x.Addr = peerOf(s.t, peer), Bytes(s.t, bytes), addrOf(s.t, buf)
		return x
	}
	op := opOf(s.t, f[0])
	r.Op = op
	switch op {
	case trace.OpSend, trace.OpSsend, trace.OpRsend, trace.OpIsend, trace.OpBsend, trace.OpPut, trace.OpAccumulate:
		return []trace.Record{with(op, trace.DirRead, args[0], args[1], args[2])}
	case trace.OpRecv, trace.OpIrecv, trace.OpGet:
		return []trace.Record{with(op, trace.DirWrite, args[0], args[1], args[2])}
	case trace.OpSendrecv:
		return []trace.Record{with(op, trace.DirRead, args[0], args[1], args[2]), with(op, trace.DirWrite, args[3], args[4], args[5])}
	case trace.OpWait, trace.OpFree:
		var out []trace.Record
		for _, a := range args {
			x := r
			x.Req = uint32(Int(s.t, a))
			out = append(out, x)
		}
		return out
	case trace.OpUnmap: // bytes buffer
		return []trace.Record{with(op, trace.DirNone, "none", args[0], args[1])}
	case trace.OpBcast, trace.OpReduce, trace.OpGather, trace.OpScatter:
		return []trace.Record{with(op, trace.DirRead, args[0], args[1], args[2])}
	case trace.OpAllreduce, trace.OpAlltoall, trace.OpScan, trace.OpReduceScatter, trace.OpNeighbor:
		return []trace.Record{with(op, trace.DirRead, "none", args[0], args[1]), with(op, trace.DirWrite, "none", args[0], args[2])}
	case trace.OpAlltoallv: // peer bytes send-buffer receive-buffer ...
		var out []trace.Record
		for ; len(args) >= 4; args = args[4:] {
			out = append(out, with(op, trace.DirRead, args[0], args[1], args[2]), with(op, trace.DirWrite, args[0], args[1], args[3]))
		}
		return out
	}
	return []trace.Record{r}
}

func opOf(t testing.TB, name string) trace.Op {
	t.Helper()
	for op := trace.OpInvalid + 1; op <= trace.OpUnmap; op++ {
		if op.String() == name {
			return op
		}
	}
	t.Fatalf("script: unknown call %q", name)
	return trace.OpInvalid
}

func peerOf(t testing.TB, s string) int32 {
	switch s {
	case "any":
		return trace.AnySource
	case "none":
		return trace.NoPeer
	case "out":
		return trace.Elsewhere
	}
	return int32(Int(t, s))
}

// Bytes reads a size, as in a script: 64K.
func Bytes(t testing.TB, s string) uint64 {
	n, err := mem.ParseBytes(s)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

func addrOf(t testing.TB, s string) mem.Addr {
	name, offset, _ := strings.Cut(s, "+")
	a := 0x10000000 + mem.Addr(name[0]-'a')<<24
	if offset != "" {
		a += mem.Addr(Bytes(t, offset))
	}
	return a
}

// Int reads a decimal number.
func Int(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(fmt.Errorf("script: %w", err))
	}
	return n
}

// Loop is the script of a program that sends each of two buffers every 4 ms.
func Loop() string {
	one := strings.Repeat("send 1 256K a; cpu 2ms; send 1 64K b+8K; cpu 2ms; ", 30)
	two := strings.Repeat("recv 0 256K a; recv 0 64K b; ", 30)
	return "0: " + one + "\n1: " + two
}
