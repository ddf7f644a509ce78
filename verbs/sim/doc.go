// Package sim is a verbs.Provider that pins nothing: it keeps exact accounts,
// costs what a calibration says, and fails when it is told to. Tests and the
// virtual replay use it; as PINWHEEL_PROVIDER=sim it runs where nothing can be
// pinned.
//
// A Provider owns only its own books. It never looks at the memory of a
// range, so a range need not be mapped.
//
// # Caveats
//
// A page in two registrations counts twice against Limits.MaxPinnedBytes, as
// it does for io_uring and for RDMA devices. Without Options.Wait a call
// returns at once and its modelled duration is only added to Stats.
package sim
