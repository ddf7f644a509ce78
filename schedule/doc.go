// Package schedule decides what becomes of a region between two uses: whether it is deregistered, and when it is
// registered again, to be ready just before its next use. It only decides. It reads no clock, makes no system call,
// starts no goroutine and never blocks, and the same calls give the same decisions. A driver brings the events and the
// time, and carries out the actions.
//
// # A region after a use
//
//	use ends
//	   | Observe
//	   v              Next: Deregister            Done
//	candidate ----------------------> released --------> RQ <------+
//	   |   ^                             |               |         | the event has come, or Missed
//	   |   | review                      | Done          |         |
//	   v   |                             v               |         |
//	registered <-----------+           gated ------------|---------+
//	   |                   |                             |
//	   v                   +-----------------------------+ Next: Register, Done
//	next use
//
// Step by step:
//
//  1. Observe hears of the completed use and tells the predictor.Predictor. The predictions that this changes count: a
//     registered region becomes a candidate for its release, a released one gets another deadline.
//  2. Next looks at the candidates (release.go), within a budget of the time that late uses cost the program (cost.go).
//     It releases a region whose next use is further away than it takes to deregister and register it. Where to hold it
//     for that use would cost more than the use's own registration, it leaves it to that. So it does with a region that
//     was idle for as long as its registration is worth, whatever is known of it. It also releases one that the program
//     has gone on without. On the processor of the rank, all that the helper does is paid from that budget (shared.go). A
//     region that stays is reviewed later. For one that is released Next returns Deregister.
//  3. Done hears that it was carried out, and asks the predictor when the region is needed. That is its deadline in RQ.
//     If an event has to come before that need, the region waits at this gate, and looks for the event are planned
//     (gate.go). A region without prediction waits in neither, nor does one that is left to its next use: that
//     registers it.
//  4. RQ (registrations.go, deadlines.go) computes the latest start with which all of it is ready in time, by what
//     operations have taken so far (estimate.go). Then Next returns Register. After its Done, the region waits for its
//     use. If that does not come, a review releases the region again.
//  5. If the use comes first, communication registers the region by itself, and Missed says so: what was due at about
//     the same time is due now (alarm.go). How long that use has stalled is what the budget pays, and expects of the
//     next. Late counts such uses by why they were late.
//
// # Drivers
//
// Those of a helper are helper.Thread, which has a clock and an OS thread, and package replay, which has virtual time.
// They have the Loop (loop.go) in common, and repeat:
//
//	looks := l.Begin(nowNs)          tells of Misses, and asks the Decider whether to look at DQ
//	if looks and there is an event:  l.Observe(event, nowNs), and again from the beginning if behind
//	if looks and there is none:      l.Emptied(nowNs)
//	a, w := l.Next(nowNs)
//	if a is an action:               carry it out, then l.Done(a, startNs, endNs, err)
//	if not, and there was no event:  sleep for l.SleepNs(nowNs, w)
//
// Uses do not wake a helper thread: the Pacer tells how long to sleep (pacer.go). With nothing registered there is nothing
// to look for: the next use is a miss, which ends a sleep. The Loop keeps what was decided and is
// still to be done (pending.go): deregistrations that are prepared together, of which a replay has none, and pauses after
// failures. A driver on the processor of its rank tells the Decider what it has spent. Placement and workers are in package
// helper.
//
// comm/vmmc/internal/lease has leases instead of registrations, and neither DQ nor sleeps. It asks its Scheduler itself.
//
// Each Register and each Deregister has one Done, also if it failed. A driver may ask for several Deregisters before it
// carries out the first. The Done of a Register comes before the following Next, unless a worker has the action:
// SchedulerOptions.Workers. Regions that the cache has dropped are told with Forget, once no event of them is left.
//
// # Conventions
//
// Times are nanoseconds of the driver's clock since about the start of the program, whose earnings count from then on
// (cost.go), and those of events are by the same clock. Sizes are pages of mem.PageSize, but for names in Bytes. A
// share is a part of one processor, from 0 to 1. Nothing here is safe for concurrent use: it belongs to one driver, or
// is a plain value.
//
// # The paper
//
// This is the helper of Li et al., "Scalable Memory Registration for High Performance Networks Using Helper Threads"
// (CF 2011): what communication leaves to the helper (section 3.1), DQ and RQ and the distance of deadlines in RQ
// (section 3.2), the condition of a release, t_c + t_p <= t_d, and a processor that helpers share (equation 2,
// SchedulerOptions.ShareNs). With SchedulerOptions.KeepUnknown false it does what the paper says. docs/experiments.md lists
// the differences otherwise.
package schedule
