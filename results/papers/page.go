package papers

import (
	"fmt"
	"strings"
)

// File is the name of the page in results/.
const File = "papers.md"

const head = `# What the papers have, and what we have

Made by "make results-papers" from papers/rows.jsonl and the raw data in this directory; do not edit. One
row for each figure, table and claim of the five papers that Pinwheel follows. "paper", "paper-strict" and "Pinwheel"
are policies: the first two are our two readings of Li et al. (docs/experiments.md).
Where a figure of ours has no other name, it is a simulation of recorded runs with the costs rdma-like (README.md).
`

// Page returns the page, from the raw data in a directory results/.
func Page(dir string) (string, error) {
	all, err := Rows()
	if err != nil {
		return "", err
	}
	d := newData(dir, all)
	var b strings.Builder
	b.WriteString(head)
	for _, p := range Papers {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| where | what | the paper | ours | made by | why they differ |\n|---|---|---|---|---|---|\n", p.Name, p.Cite)
		for i := range all {
			if r := &all[i]; r.Paper == p.Key {
				if err := d.write(&b, r); err != nil {
					return "", err
				}
			}
		}
	}
	return b.String(), nil
}

func (d *data) write(b *strings.Builder, r *Row) error {
	has := []string{}
	if r.Has != nil {
		figure, err := r.As.format(*r.Has)
		if err != nil {
			return fmt.Errorf("%s: %w", r.ID, err)
		}
		has = append(has, figure)
	}
	if r.Says != "" {
		has = append(has, r.Says)
	}
	var ours []string
	for i := range r.Ours {
		f := &r.Ours[i]
		v, err := d.value(r, f)
		if err != nil {
			return err
		}
		figure, err := f.kind(r).format(v)
		if err != nil {
			return fmt.Errorf("%s: %w", r.ID, err)
		}
		ours = append(ours, strings.TrimSpace(f.Label+" "+figure))
	}
	if r.Instead != "" {
		ours = append(ours, r.Instead)
	}
	command := ""
	if r.Command != "" {
		command = "`" + r.Command + "`"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", r.Where, r.What, strings.Join(has, "; "), strings.Join(ours, "; "), command, r.Why)
	return nil
}
