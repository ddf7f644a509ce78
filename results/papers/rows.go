// Package papers sets what the five papers have that Pinwheel follows beside what we have: one row for each of their
// figures, tables and claims. What they have is typed once, in rows.jsonl. Figures of ours are read from the raw data in
// results/, wherever the row says that they are.
package papers

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
)

//go:embed rows.jsonl
var rows []byte

// Paper is one of the five.
type Paper struct {
	Key  string // in rows
	Name string
	Cite string
}

// Papers are all of them, in the order of the page.
var Papers = []Paper{
	{"li2011", "Helper threads", "D. Li, K. W. Cameron, D. S. Nikolopoulos, B. R. de Supinski, M. Schulz. *Scalable Memory Registration for " +
		"High Performance Networks Using Helper Threads.* CF'11, Ischia, May 2011."},
	{"wyckoff2005", "Correctness of cached registrations", "P. Wyckoff, J. Wu. *Memory Registration Caching Correctness.* CCGrid, May 2005."},
	{"squyres2009", "A registration cache in the kernel", "J. Squyres, for several MPI implementations. *New proposal for memory " +
		"management.* Mailing list ofa-general, 13 and 28 April 2009."},
	{"dalessandro2007", "Serving files", "D. Dalessandro, P. Wyckoff. *Memory Management Strategies for Data Serving with RDMA.* Hot Interconnects, 2007."},
	{"dubnicki1996", "Virtual memory-mapped communication", "C. Dubnicki, L. Iftode, E. W. Felten, K. Li. *Software Support for Virtual " +
		"Memory-Mapped Communication.* 1996."},
}

// Row is a figure, a table or a claim of a paper.
type Row struct {
	ID    string `json:"id"`
	Paper string `json:"paper"`
	Where string `json:"where"` // section, figure, table
	What  string `json:"what"`
	// Has is what the paper has, as As says; Says is the same in words, if it is no figure.
	Has  *float64 `json:"has"`
	Says string   `json:"says"`
	As   Kind     `json:"as"`
	// Ours are figures of ours. Instead says what there is if there are none, without figures.
	Ours    []Figure `json:"ours"`
	Instead string   `json:"instead"`
	Command string   `json:"command"` // that makes the raw data; empty if nothing does
	Why     string   `json:"why"`     // they differ
}

// Rows returns all rows, in the order of the page. Fields that are not known are an error.
func Rows() ([]Row, error) {
	d := json.NewDecoder(bytes.NewReader(rows))
	d.DisallowUnknownFields()
	var all []Row
	for {
		var r Row
		err := d.Decode(&r)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("rows.jsonl, row %d: %w", len(all)+1, err)
		}
		all = append(all, r)
	}
}

// Has returns a figure that a paper has. There must be one: it panics otherwise, as rows.jsonl is part of the program.
func Has(id string) float64 {
	all, err := Rows()
	if err != nil {
		panic(err)
	}
	for i := range all {
		if all[i].ID == id && all[i].Has != nil {
			return *all[i].Has
		}
	}
	panic("rows.jsonl has no figure " + id)
}

// Kind is how a figure follows from raw data, and how it is written.
type Kind string

// With a base, the figures of these are relations to it.
const (
	Saved     Kind = "saved"    // what is less than the base, as a share of it
	Longer    Kind = "longer"   // what is more than the base, as a share of it
	Times     Kind = "times"    // how many times as much the base is
	Share     Kind = "share"    // a value from 0 to 1
	Percent   Kind = "percent"  // a value of which 100 is the whole
	Slowdown  Kind = "slowdown" // run time over that of the base, or as it is
	Mebibytes Kind = "MiB"      // of a value in bytes
	Seconds   Kind = "s"        // of a value in nanoseconds
	Micros    Kind = "us"       // of a value in nanoseconds
	Nanos     Kind = "ns"
	Rate      Kind = "MB/s"
	Count     Kind = "count"
)

// format writes a value of a kind.
func (k Kind) format(v float64) (string, error) {
	switch k {
	case Saved, Longer, Share:
		return fmt.Sprintf("%.2f %%", 100*v), nil
	case Percent:
		return fmt.Sprintf("%.2f %%", v), nil
	case Times:
		return fmt.Sprintf("%.2f x", v), nil
	case Slowdown:
		return fmt.Sprintf("%.4f", v), nil
	case Mebibytes:
		return fmt.Sprintf("%.0f MiB", v/(1<<20)), nil
	case Seconds:
		return fmt.Sprintf("%.2f s", v/1e9), nil
	case Micros:
		return fmt.Sprintf("%.2f us", v/1e3), nil
	case Nanos:
		return fmt.Sprintf("%.3g ns", v), nil
	case Rate:
		return fmt.Sprintf("%.0f MB/s", v), nil
	case Count:
		return fmt.Sprintf("%.0f", v), nil
	}
	return "", fmt.Errorf("no kind of figure %q", k)
}
