package broker

import (
	"fmt"
	"io"
	"text/tabwriter"

	"pinwheel/mem"
)

// WriteTable writes the exports of processes, a line each. A process without exports has a line of its own.
func WriteTable(w io.Writer, all []Process) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "USER\tPROCESS\tPID\tEXPORT\tBYTES\tIMPORTERS\tSHARING\tRECEIVED\tNOTIFICATIONS\tQUEUED")
	for i := range all {
		p := &all[i]
		head := fmt.Sprintf("%d\t%s\t%d", p.UID, p.Name, p.PID)
		switch {
		case p.Error != "":
			fmt.Fprintf(t, "%s\t%s\n", head, p.Error)
		case len(p.Exports) == 0:
			fmt.Fprintf(t, "%s\tnone\n", head)
		}
		for _, e := range p.Exports {
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%s\t%d\t%d\n", head, e.ID, mem.FormatBytes(e.Bytes), e.Importers, e.Sharing,
				mem.FormatBytes(e.ReceivedBytes), e.Notifications, e.Queued)
		}
	}
	return t.Flush()
}
