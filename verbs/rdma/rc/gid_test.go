package rc

import (
	"net/netip"
	"testing"
	"testing/fstest"
)

// sysfs is the tree of a port with the given "GID type" lines, in order.
func sysfs(entries ...[2]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i, e := range entries {
		name := string(rune('0' + i))
		tree["class/infiniband/mlx5_0/ports/1/gids/"+name] = &fstest.MapFile{Data: []byte(e[0] + "\n")}
		if e[1] != "" {
			tree["class/infiniband/mlx5_0/ports/1/gid_attrs/types/"+name] = &fstest.MapFile{Data: []byte(e[1] + "\n")}
		}
	}
	return tree
}

func TestGIDChoice(t *testing.T) {
	roce := sysfs(
		[2]string{"fe80:0000:0000:0000:5054:00ff:fe99:0001", "IB/RoCE v1"},
		[2]string{"fe80:0000:0000:0000:5054:00ff:fe99:0001", "RoCE v2"},
		[2]string{"0000:0000:0000:0000:0000:ffff:0a63:0001", "IB/RoCE v1"},
		[2]string{"0000:0000:0000:0000:0000:ffff:0a63:0001", "RoCE v2"},
		[2]string{"2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2"},
		[2]string{"0000:0000:0000:0000:0000:0000:0000:0000", ""},
	)
	ib := sysfs([2]string{"fe80:0000:0000:0000:0002:c903:00ef:5ee1", ""})
	any, loopback := netip.Addr{}, netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		name        string
		tree        fstest.MapFS
		want, local netip.Addr
		index       int
	}{
		{"IPv4 over RoCE v2 when nothing else is known", roce, any, loopback, 3},
		{"the socket's own address", roce, any, netip.MustParseAddr("2001:db8::1"), 4},
		{"the socket's own address, as a mapped one", roce, any, netip.MustParseAddr("::ffff:10.99.0.1"), 3},
		{"as asked for", roce, netip.MustParseAddr("fe80::5054:ff:fe99:1"), netip.MustParseAddr("10.99.0.1"), 1},
		{"the only one of InfiniBand", ib, any, loopback, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := readGIDs(c.tree, "mlx5_0", 1)
			if err != nil {
				t.Fatal(err)
			}
			if g, err := chooseGID(all, c.want, c.local); err != nil || g.index != c.index {
				t.Errorf("chose %+v, %v of %+v; want index %d", g, err, all, c.index)
			}
		})
	}
	all, err := readGIDs(roce, "mlx5_0", 1)
	if err != nil || len(all) != 5 {
		t.Fatalf("read %+v, %v", all, err)
	}
	if g, err := chooseGID(all, netip.MustParseAddr("10.99.0.2"), any); err == nil {
		t.Errorf("chose %+v for an address that the port does not have", g)
	}
	if g, err := chooseGID(nil, any, any); err == nil {
		t.Errorf("chose %+v of an empty table", g)
	}
}
