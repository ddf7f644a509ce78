package report

// benchmark has what a trace does not say itself.
type benchmark struct {
	program string
	steps   int    // iterations or time steps in the trace, for the close-up
	paper   string // the paper's run that is nearest: results/papers has what it saved of the peak
	why     string // what in the trace decides how much can be saved at the peak
}

// benchmarks are the shared NPB traces. Steps are those of the problem
// classes (NPB 3.4, npbparams.h), or what the run was limited to.
var benchmarks = []benchmark{
	{program: "bt.B.4", steps: 200},
	{
		program: "bt.C.4", steps: 60, paper: "BT.D.4",
		why: "copy_faces posts six receives and six sends at once. These twelve buffers are all the memory that BT ever sends from or " +
			"receives into, because the solvers use parts of the same two arrays. A policy that never waits has all of it pinned " +
			"then, once in every time step. It can only save the time between.",
	},
	{
		program: "cg.C.4", steps: 75, paper: "CG.D.4",
		why: "CG has three vectors of 586 KiB and uses two of them at a time. It needs the third once in an outer iteration. After 25 " +
			"equal inner iterations, a predictor expects the other two again. Only foreknowledge keeps the third out of the peak.",
	},
	{
		program: "ft.B.4", steps: 20, paper: "FT.B.4",
		why: "FT has three arrays. Each transpose reads one and writes another, so one third is never in use, in the paper as here.",
	},
	{program: "ft.C.16", steps: 20},
	{program: "is.C.4", steps: 10},
	{program: "lu.B.4", steps: 100},
	{
		program: "lu.D.4", steps: 12, paper: "LU.D.4",
		why: "exchange_3 has two buffers of 6.4 MiB, one to send from and one to receive into. It posts the receive some 40 us after the " +
			"send is complete. Registering 6.4 MiB takes longer, so a rank that does both must have both registered. The messages of " +
			"the wavefront are smaller than 16 KiB.",
	},
	{program: "mg.C.4", steps: 20},
	{program: "sp.B.4", steps: 400},
	{
		program: "sp.D.4", steps: 15, paper: "SP.D.4",
		why: "as in BT, copy_faces uses all twelve buffers at once, and the solvers use parts of the same two arrays.",
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
