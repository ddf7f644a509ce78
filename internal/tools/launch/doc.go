// Package launch turns the command that starts an MPI job into one whose
// ranks load libpinwheel.so and whose transport keeps no registrations of its
// own.
//
// Make is the whole decision: it looks at the command, its environment and the
// files that they name, and returns a Plan, which Exec or Run then performs.
// The launcher itself is never preloaded, nor is a shell: a rank is given
// LD_PRELOAD by the launcher's own option for that.
//
// A job is never failed. Where the library can't work, the plan is the
// command as it was typed, with one line that says why.
//
// Wrappers that people put before a launcher (wrapper.go) stay where they are.
//
// # Adding a launcher
//
// A launcher has a file, such as hydra.go, which says how to recognise it, which
// of its options take values, and how it gives a variable to its ranks.
// launcher.go has the list of them.
//
// # Caveats
//
// Programs are judged by their files on this node. A program that is found
// elsewhere only, or behind an option that is not known here, isn't judged.
package launch
