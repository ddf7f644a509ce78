package trace_test

import (
	"errors"
	"fmt"
	"io"
	"log"

	"pinwheel/trace"
)

// Count what one rank of a trace sends.
func Example() {
	f, err := trace.Open("../results/traces/ft.B.4.pwt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if torn := f.Torn(); torn != nil {
		log.Print(torn) // what follows is then the part that can be read
	}
	rr, err := f.Rank(0)
	if err != nil {
		log.Fatal(err)
	}
	var sent uint64
	for r := (trace.Record{}); ; {
		if err := rr.Next(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		if r.Op == trace.OpAlltoall && r.Dir == trace.DirRead {
			sent += r.Bytes
		}
	}
	fmt.Printf("%s: rank 0 of %d puts %d MiB into alltoall\n", f.Header().Program, f.Header().Ranks, sent>>20)
	// Output: ft.B.4: rank 0 of 4 puts 2816 MiB into alltoall
}
