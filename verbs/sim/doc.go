// Package sim is a verbs.Provider that pins nothing. It counts its registrations exactly,
// takes the time that a calibration says, and fails on request. Tests use it, and
// PINWHEEL_PROVIDER=sim selects it on machines where no memory can be pinned.
//
// A Provider never looks at the memory of a range, which need not be mapped.
//
// # Caveats
//
// A page in two registrations counts twice against Limits.MaxPinnedBytes, as
// it does for io_uring and for RDMA devices. Without Options.Wait a call
// returns at once and its modelled duration is only added to Stats.
package sim
