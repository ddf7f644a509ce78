package report

// benchmark is what is known of a trace that it does not say itself.
type benchmark struct {
	program string
	steps   int     // iterations or time steps in the trace, for the close-up
	paper   string  // the paper's run that is nearest
	saved   float64 // of peak, by the paper
	paperOf string  // where the paper has it
	why     string  // what in the trace decides how much can be saved at the peak
}

// benchmarks are the shared NPB traces. Steps are those of the problem
// classes (NPB 3.4, npbparams.h), or what the run was limited to.
var benchmarks = []benchmark{
	{program: "bt.B.4", steps: 200},
	{
		program: "bt.C.4", steps: 60, paper: "BT.D.4", saved: 0.1613, paperOf: "section 6.2",
		why: "copy_faces posts six receives and six sends at once, and these twelve buffers are all the memory that BT ever sends from or " +
			"receives into: the solvers use parts of the same two arrays. Whoever does not wait has all of it pinned then, once in every time " +
			"step; what can be saved is the time between.",
	},
	{
		program: "cg.C.4", steps: 75, paper: "CG.D.4", saved: 0, paperOf: "section 6.2",
		why: "three vectors of 586 KiB, two of them in use at a time. The third is needed once in an outer iteration, when after 25 equal " +
			"inner iterations the other two are expected again: only foreknowledge keeps it from adding to the peak.",
	},
	{
		program: "ft.B.4", steps: 20, paper: "FT.B.4", saved: 0.310, paperOf: "section 6.2",
		why: "three arrays, of which each transpose reads one and writes another: a third is never in use, in the paper as here.",
	},
	{program: "ft.C.16", steps: 20, paper: "FT.C.16, four tasks a node", saved: 0.4939, paperOf: "section 6.3, test 1"},
	{program: "is.C.4", steps: 10},
	{program: "lu.B.4", steps: 100},
	{
		program: "lu.D.4", steps: 12, paper: "LU.D.4", saved: 0.1843, paperOf: "section 6.2",
		why: "exchange_3 has two buffers of 6.4 MiB, one to send from and one to receive into. The receive is posted some 40 us after the " +
			"send is complete, less than it takes to register 6.4 MiB, so that a rank which does both must have both registered. Messages " +
			"of the wavefront are below 16 KiB.",
	},
	{program: "mg.C.4", steps: 20},
	{program: "sp.B.4", steps: 400},
	{
		program: "sp.D.4", steps: 15, paper: "SP.D.4", saved: 0.0868, paperOf: "section 6.2",
		why: "as BT: copy_faces uses all twelve buffers at once, and the solvers use parts of the same two arrays.",
	},
}

func benchmarkOf(program string) benchmark {
	for _, b := range benchmarks {
		if b.program == program {
			return b
		}
	}
	return benchmark{program: program}
}
