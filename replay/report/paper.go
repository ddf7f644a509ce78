package report

// benchmark is what is known of a trace that it does not say itself.
type benchmark struct {
	program string
	steps   int // iterations or time steps in the trace, for the close-up
	paper   string
	saved   float64 // of peak, by the paper
	paperOf string  // where the paper has it
}

// benchmarks are the shared NPB traces. Steps are those of the problem
// classes (NPB 3.4, npbparams.h), or what the run was limited to.
var benchmarks = []benchmark{
	{program: "bt.B.4", steps: 200},
	{program: "bt.C.4", steps: 60, paper: "BT.D.4", saved: 0.1613, paperOf: "section 6.2"},
	{program: "cg.C.4", steps: 75, paper: "CG.D.4", saved: 0, paperOf: "section 6.2"},
	{program: "ft.B.4", steps: 20, paper: "FT.B.4", saved: 0.310, paperOf: "section 6.2"},
	{program: "ft.C.16", steps: 20, paper: "FT.C.16, four tasks a node", saved: 0.4939, paperOf: "section 6.3, test 1"},
	{program: "is.C.4", steps: 10},
	{program: "lu.B.4", steps: 100},
	{program: "lu.D.4", steps: 12, paper: "LU.D.4", saved: 0.1843, paperOf: "section 6.2"},
	{program: "mg.C.4", steps: 20},
	{program: "sp.B.4", steps: 400},
	{program: "sp.D.4", steps: 15, paper: "SP.D.4", saved: 0.0868, paperOf: "section 6.2"},
}

func benchmarkOf(program string) benchmark {
	for _, b := range benchmarks {
		if b.program == program {
			return b
		}
	}
	return benchmark{program: program}
}
