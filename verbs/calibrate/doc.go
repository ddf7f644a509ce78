// Package calibrate measures how long a provider takes to register and deregister
// memory, and fits the cost model of package verbs to the times: a*pages + b, by
// linear regression as in section 3.2 of "Scalable Memory Registration for High
// Performance Networks Using Helper Threads" (CF'11). Run is exact and takes
// seconds; its Calibration says what was measured where and how well the model
// fits, and is kept as a JSON file. Quick is an estimate within a millisecond.
//
// # Method
//
// Every round measures each size of the ladder once, in a new order, on one
// locked OS thread, so that a disturbance never hits one size alone and no size
// always finds the caches as the same other size left them. The median of each
// size is a point of the regression, weighted by 1/median^2: this way relative
// errors count, and 16 KiB matter as much as 128 MiB. R2 is that of the weighted
// regression.
//
// Memory is private, anonymous, of small pages (MADV_NOHUGEPAGE), and was
// touched from its start to its end. A second calibration maps the memory again for every measurement, so that the
// registration has to fault it in. Where there are transparent huge pages, a third one uses them; its pages are still
// of 4 KiB, 512 to a huge page.
//
// # Caveats
//
// Between measurements the program does nothing but other measurements, as in the
// paper. After a computation that has filled the processor's caches, large
// registrations take up to twice as long: Options.BetweenBytes. The cost of the timer is
// subtracted. Work that a kernel does later in a worker is not measured: io_uring's
// deregistration before Linux 6.4. A busy machine shows in the 90th percentiles,
// and less in the medians.
package calibrate
