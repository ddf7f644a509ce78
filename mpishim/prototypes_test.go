package mpishim

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printRows prints every row of calls.h as one line of JSON.
const printRows = `
#include <stdio.h>
#include "call.h"
#include "calls.h"
#define BUFFER(b) (int)s.b.buf, (int)s.b.count, (int)s.b.type, (int)s.b.displs, (int)s.b.form
#define ROW(Name_, name_, n, ...) { \
	const struct pw_spec s = {__VA_ARGS__}; \
	printf("{\"Name\":\"MPI_" #Name_ "\",\"Arguments\":%d,\"Send\":[%d,%d,%d,%d,%d],\"Recv\":[%d,%d,%d,%d,%d]," \
	       "\"Peer\":%d,\"Tag\":%d,\"From\":%d,\"FromTag\":%d,\"Comm\":%d,\"Request\":%d,\"Number\":%d,\"Which\":%d,\"Some\":%d,\"Flag\":%d," \
	       "\"Status\":%d,\"Message\":%d,\"Win\":%d,\"Handle\":%d,\"Lifecycle\":%d,\"Neighborhood\":%d," \
	       "\"Aints\":%d,\"Ready\":%d}\n", n, \
	       BUFFER(send), BUFFER(recv), s.peer, s.tag, s.from, s.from_tag, s.comm, s.req, s.number, s.which, s.some, s.flag, \
	       s.status, s.message, s.win, s.handle, s.lifecycle, s.neighborhood, s.aints, s.ready); }
#define EXT(Name_, n) /* the row before */
int main(void) { PW_CALLS(ROW, ROW, ROW, EXT) return 0; }
`

// row is a row of calls.h. Buffers are: position of the buffer, its count,
// type and displacements, and how many there are.
type row struct {
	Name                                                                string
	Arguments                                                           int
	Send, Recv                                                          [5]int
	Peer, Tag, From, FromTag, Comm, Request, Number, Which, Some, Flag  int
	Status, Message, Win, Handle, Lifecycle, Neighborhood, Aints, Ready int
}

const (
	partitions = 7    // enum pw_count_form
	vec, vecw  = 3, 4 // enum pw_count_form: the first with an array of counts, and the one with types as well
	typeFreed  = 2    // enum pw_lifecycle: what comes after is of communicators
	commFreed  = 5    // and what comes after that of windows
)

// parameters are the types that the arguments of the call must have, "" where
// the row says nothing. wide is for MPI_x_c.
func (r row) parameters(wide bool) []string {
	types := make([]string, r.Arguments+1)
	set := func(position int, kind string) {
		if position > 0 {
			types[position] = kind
		}
	}
	one, displacement := "int", "int"
	if wide {
		one, displacement = "MPI_Count", "MPI_Aint"
	} else if r.Aints != 0 {
		displacement = "MPI_Aint"
	}
	for _, b := range [][5]int{r.Send, r.Recv} {
		list := b[4] >= vec
		set(b[0], "void*")
		if b[4] == partitions {
			set(b[1], "MPI_Count")
			set(b[2], "MPI_Datatype")
			set(b[3], "int")
			continue
		}
		set(b[1], map[bool]string{false: one, true: one + "*"}[list])
		set(b[2], map[bool]string{false: "MPI_Datatype", true: "MPI_Datatype*"}[b[4] == vecw])
		set(b[3], displacement+"*")
	}
	for _, position := range []int{r.Peer, r.Tag, r.From, r.FromTag, r.Number} {
		set(position, "int")
	}
	for _, position := range []int{r.Which, r.Some, r.Flag} {
		set(position, "int*")
	}
	set(r.Comm, "MPI_Comm")
	set(r.Request, "MPI_Request*")
	set(r.Ready, "MPI_Request")
	set(r.Status, "MPI_Status*")
	set(r.Message, "MPI_Message*")
	set(r.Win, "MPI_Win")
	switch {
	case r.Lifecycle > commFreed:
		set(r.Handle, "MPI_Win*")
	case r.Lifecycle > typeFreed:
		set(r.Handle, "MPI_Comm*")
	default:
		set(r.Handle, "MPI_Datatype*")
	}
	return types
}

var declaration = regexp.MustCompile(`\bint\s+(MPIX?_\w+)\s*\(([^()]*)\)`)

// prototypes returns the types of the arguments of every call that mpi.h and mpi-ext.h
// declare, as "void*", "int", "int*", "MPI_Comm".
func prototypes(t *testing.T, compiler string) map[string][]string {
	t.Helper()
	cmd := exec.Command(compiler, "-E", "-P", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <mpi.h>\n#if __has_include(<mpi-ext.h>)\n#include <mpi-ext.h>\n#endif\n")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`__attribute__\s*\(\(([^()]|\([^()]*\))*\)\)`).ReplaceAll(text, nil)
	all := map[string][]string{}
	for _, m := range declaration.FindAllSubmatch(text, -1) {
		types := []string{""} // they are counted from 1
		for _, p := range strings.Split(string(m[2]), ",") {
			words := strings.Fields(strings.NewReplacer("*", " * ", "[", " [", "const", "").Replace(p))
			kind := words[0]
			if slices.Contains(words, "*") || strings.Contains(p, "[") {
				kind += "*"
			}
			types = append(types, kind)
		}
		all[string(m[1])] = types
	}
	return all
}

func rows(t *testing.T) (all []row) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skipf("compiling calls.h: %v", err)
	}
	program := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(program+".c", []byte(printRows), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-std=gnu11", "-D_GNU_SOURCE", "-Icore", "-Ipreload", "-I../regcache", "-o", program,
		program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestRowsFitThePrototypes(t *testing.T) {
	table := rows(t)
	tested := 0
	for _, compiler := range []string{"mpicc.openmpi", "mpicc.mpich", "mpicc"} {
		if _, err := exec.LookPath(compiler); err != nil {
			continue
		}
		tested++
		t.Run(compiler, func(t *testing.T) {
			declared := prototypes(t, compiler)
			found := 0
			for _, r := range table {
				for _, wide := range []bool{false, true} {
					name := r.Name
					if wide {
						name += "_c"
					}
					have, ok := declared[name]
					if !ok { // Open MPI 4
						have, ok = declared[strings.Replace(name, "MPI_", "MPIX_", 1)]
					}
					if !ok { // an MPI that is older
						continue
					}
					found++
					want := r.parameters(wide)
					if len(have) != len(want) {
						t.Errorf("%s has %d arguments, not %d", name, len(have)-1, len(want)-1)
						continue
					}
					for i := range want {
						if want[i] != "" && want[i] != have[i] {
							t.Errorf("%s: argument %d is %s, not %s", name, i, have[i], want[i])
						}
					}
				}
			}
			// Of MPI-4 are MPI_Isendrecv, MPI_Isendrecv_replace, three that make communicators, 22 persistent
			// collectives, and six for messages in partitions.
			if found < len(table)-5-22-6 {
				t.Errorf("%d of %d rows are declared", found, len(table))
			}
		})
	}
	if tested == 0 {
		t.Skip("no compiler of an MPI library is installed (make install-mpi)")
	}
}
