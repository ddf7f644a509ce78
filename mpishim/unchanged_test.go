package mpishim

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/trace"
)

// What a program prints and how it ends are the same without us, under us with
// everything noted that it gives to MPI, and recorded.
func TestRealJobsRunAsWithoutUs(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		for _, program := range []struct {
			name     string
			ranks    int
			recorded string // what "record" says; "" for anything
			needs    string // a call that older libraries lack
		}{
			{"errors", 2, "", ""},  // errors are handled by the program, once
			{"inplace", 4, "", ""}, // what means nothing is not looked at
			// Of each rank five steps with six exchanges, an allreduce, and the end.
			{"jump", 2, "recorded 126 calls of 2 ranks", ""},
			// Four exchanges, an allreduce, and the end.
			{"sessions", 2, "recorded 22 calls of 2 ranks", "MPI_Session_init"},
			// Those that were started have one exchange of their own and one with who started them.
			{"spawn", 2, "recorded 14 calls of 2 ranks that were started by others", "MPI_Comm_spawn"},
		} {
			t.Run(m.name+"/"+program.name, func(t *testing.T) {
				m.need(t)
				if _, has := prototypes(t, m.compiler)[program.needs]; program.needs != "" && !has {
					t.Skipf("%s is older than %s", m.name, program.needs)
				}
				path := m.compileWithVerbs(t, "../lab/testbed/programs/"+program.name+".c")
				environ := m.transports["shared memory"]
				want := m.start(t, program.ranks, environ, nil, path)
				if want.status != 0 && program.name == "spawn" {
					t.Skipf("this %s can't start processes here: status %d\n%s", m.name, want.status, want.stderr)
				}
				if want.status != 0 || want.stdout == "" {
					t.Fatalf("without us: status %d\n%s%s", want.status, want.stdout, want.stderr)
				}
				for _, pinwheel := range [][]string{{"run"}, {"record", "-o", "."}} {
					have := m.start(t, program.ranks, environ, pinwheel, path)
					if have.status != want.status || have.stdout != want.stdout ||
						pinwheel[0] == "record" && !strings.Contains(have.stderr, program.recorded) {
						t.Errorf("%s: status %d, not %d\n%s%s\nwithout us\n%s", pinwheel[0], have.status, want.status,
							have.stdout, have.stderr, want.stdout)
					}
				}
			})
		}
	}
}

// Every kind of argument is noted, and what means nothing is not.
func TestRealJobsAreKnownByWhatTheyGive(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			_, said := m.run(t, m.transports["shared memory"], []string{"run"},
				m.compileWithVerbs(t, "testing/standin/announced.c"))
			lines := strings.Split(strings.TrimSpace(said), "\n")
			if len(lines) < 64 ||
				slices.ContainsFunc(lines, func(line string) bool { return !strings.HasSuffix(line, ": yes") }) {
				t.Errorf("%d lines:\n%s", len(lines), said)
			}
		})
	}
}

// UCX before 1.15 moves memory elsewhere, in every program that is linked with
// it; under us its hooks are not needed, as it caches nothing.
func TestRealJobsMoveMemoryWhereTheyWant(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			j := m.start(t, 2, m.transports["shared memory"], []string{"run"}, m.compile(t, "../lab/testbed/programs/remap.c"))
			if j.status != 0 || !strings.Contains(j.stdout, "data right") {
				t.Errorf("status %d\n%s%s", j.status, j.stdout, j.stderr)
			}
		})
	}
}

// In Fortran as well; and what lies where MPI_BOTTOM counts from is recorded.
func TestRealJobsKnowThePlacesOfFortran(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			m.compiler = strings.Replace(m.compiler, "mpicc", "mpifort", 1)
			path := m.compileWithVerbs(t, "../lab/testbed/programs/places.f90")
			environ := m.transports["shared memory"]
			want := m.start(t, 2, environ, nil, path)
			for _, pinwheel := range [][]string{{"run"}, {"record", "-o", ".", "--merged", "all.pwt"}} {
				have := m.start(t, 2, environ, pinwheel, path)
				if want.status != 0 || have.status != 0 || have.stdout != want.stdout {
					t.Fatalf("%s: status %d, not %d\n%s%s\nwithout us\n%s", pinwheel[0], have.status, want.status,
						have.stdout, have.stderr, want.stdout)
				}
				if pinwheel[0] == "record" {
					broadcasts(t, filepath.Join(have.dir, "all.pwt"), 2, 4096*8)
				}
			}
		})
	}
}

// What Fortran starts and C ends, or C starts and Fortran ends, is one request or message to us as well.
func TestRealJobsEndInEitherLanguage(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			m.compiler = strings.Replace(m.compiler, "mpicc", "mpifort", 1)
			dir, said := m.run(t, m.transports["shared memory"], []string{"record", "-o", "."},
				m.compile(t, "../lab/testbed/programs/languages.f90", "../lab/testbed/programs/languages_ends.c"))
			if !strings.Contains(said, "done") {
				t.Error(said)
			}
			has, leftOut := replayed(t, filepath.Join(dir, "languages.pwt"))
			for op, n := range map[string]int{"irecv": 4, "isend": 4, "recv": 1, "wait": 8} {
				if has[op] != n {
					t.Errorf("%d records of %s, want %d, of all %v", has[op], op, n, has)
				}
			}
			if leftOut != "" {
				t.Errorf("left out %q", leftOut)
			}
		})
	}
}

// broadcasts checks that every rank of a trace has one broadcast, of so many bytes.
func broadcasts(t *testing.T, path string, ranks int, bytes uint64) {
	t.Helper()
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read from
	var sizes []uint64
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		var r trace.Record
		for err = rr.Next(&r); err == nil; err = rr.Next(&r) {
			if r.Op == trace.OpBcast && r.Addr > 1<<16 {
				sizes = append(sizes, r.Bytes)
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	if want := slices.Repeat([]uint64{bytes}, ranks); !slices.Equal(sizes, want) {
		t.Errorf("broadcasts of %d bytes, not of %d", sizes, want)
	}
}
