package rc

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// gid is an entry of a port's GID table: an address that the device can send from.
type gid struct {
	index int
	addr  netip.Addr // an IPv4 address is unmapped
	v2    bool       // RoCE v2, over UDP and routable; else RoCE v1 or InfiniBand
}

// sysfsRoot returns where sysfs is mounted: SYSFS_PATH names another place, as for
// libibverbs (ibv_get_sysfs_path).
func sysfsRoot() string { return cmp.Or(os.Getenv("SYSFS_PATH"), "/sys") }

// readGIDs reads a GID table below /sys, given as sys. The library has a call
// for it only since rdma-core 32; the files are there since Linux 4.5
// (Documentation/ABI/stable/sysfs-class-infiniband).
func readGIDs(sys fs.FS, device string, port uint8) ([]gid, error) {
	dir := path.Join("class/infiniband", device, "ports", strconv.Itoa(int(port)))
	files, err := fs.ReadDir(sys, dir+"/gids")
	if err != nil {
		return nil, fmt.Errorf("rc: GID table of %s: %w", device, err)
	}
	var all []gid
	for _, f := range files {
		index, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		text, err := fs.ReadFile(sys, path.Join(dir, "gids", f.Name()))
		if err != nil {
			continue // an entry may go at any time
		}
		addr, err := netip.ParseAddr(strings.TrimSpace(string(text)))
		if err != nil || addr.IsUnspecified() {
			continue
		}
		kind, _ := fs.ReadFile(sys, path.Join(dir, "gid_attrs/types", f.Name()))
		all = append(all, gid{index, addr.Unmap(), strings.TrimSpace(string(kind)) == "RoCE v2"})
	}
	slices.SortFunc(all, func(a, b gid) int { return a.index - b.index })
	return all, nil
}

// chooseGID picks the entry to send from: the one with the address want if
// that is valid, which then must be there. Otherwise the one with the address
// that the socket to the peer has (local), since there is a route from it; then
// any IPv4, any routable IPv6, anything; RoCE v2 before v1, low index first.
func chooseGID(all []gid, want, local netip.Addr) (gid, error) {
	want, local = want.Unmap(), local.Unmap()
	rank := func(g gid) int {
		r := 0
		switch {
		case g.addr == local:
			r = 6
		case g.addr.Is4():
			r = 4
		case !g.addr.IsLinkLocalUnicast():
			r = 2
		}
		if g.v2 {
			r++
		}
		return r
	}
	best := -1
	for i, g := range all {
		if want.IsValid() && g.addr != want {
			continue
		}
		if best < 0 || rank(g) > rank(all[best]) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return all[best], nil
	case want.IsValid():
		return gid{}, fmt.Errorf("rc: the port has no GID with address %v (it has %v)", want, all)
	}
	return gid{}, fmt.Errorf("rc: the port has no GID (give its network device an address)")
}
