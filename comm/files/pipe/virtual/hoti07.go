package virtual

import "pinwheel/verbs"

const mib = 1 << 20

// HotI07 is the server of the paper's section 5: two Opteron 250 processors, InfiniBand 4X SDR, Linux 2.6.20. The paper
// gives its wire, 900 MiB/s, and says that registration and deregistration bring that down to 700 MiB/s: 1.24 us for a
// page. The rest is fitted to its figures:
//   - A registration and its end take 60 us beside what they take for each page. So buffers of 32 and 64 KiB reach 200
//     to 400 MiB/s (Figures 7 and 8).
//   - The kernel module saves the translation of addresses, which is most of the time of a page (Figure 9). With the
//     0.24 us that remain, a second pipe gains as little as in Figure 6.
//   - The translation of a page loads the bus with 40 cache lines. So pipelining stays below sendfile (Figure 10).
//   - A copy outside the cache crosses the bus three times: it reads the source, and reads and writes the target. The
//     cache holds a file of 64 KiB and its copy. So static buffers are good up to 64 KiB (Figure 2).
var HotI07 = Computer{
	Processors:       2,
	BusBytesPerSec:   2400 * mib,
	WireBytesPerSec:  900 * mib,
	MessageNs:        1000,
	CompletionNs:     20_000,
	PostNs:           2_000,
	CopyBytesPerSec:  4000 * mib,
	CopyCacheBytes:   128 << 10,
	MemoryTouches:    3,
	TranslationBytes: 2560,
}

// Registration on that server by a process, and by the kernel module of the paper's section 3.3.
var (
	HotI07User = Registration{verbs.Costs{
		Register:   verbs.Cost{PerPageNs: 1120, FixedNs: 45_000},
		Deregister: verbs.Cost{PerPageNs: 120, FixedNs: 15_000},
	}, true}
	HotI07Kernel = Registration{verbs.Costs{
		Register:   verbs.Cost{PerPageNs: 120, FixedNs: 45_000},
		Deregister: verbs.Cost{PerPageNs: 120, FixedNs: 15_000},
	}, false}
)
