package vmmc

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/comm/vmmc/broker/brokertest"
	"pinwheel/internal/testwait"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestMain(m *testing.M) {
	if bufferID := os.Getenv("VMMC_TEST_PEER"); bufferID != "" {
		if over, bufferID, connected := strings.Cut(bufferID, " "); connected {
			switch over {
			case "step":
				stepsProcess(bufferID, os.Getenv("VMMC_TEST_DIR"))
			case "exporting":
				exporterStepsProcess(bufferID, os.Getenv("VMMC_TEST_DIR"))
			}
			connectedPeer(over, bufferID, os.Getenv("VMMC_TEST_DIR"))
		}
		peerProcess(bufferID, os.Getenv("VMMC_TEST_DIR"))
	}
	goleak.VerifyTestMain(brokertest.Main{M: m})
}

// lastName makes the names of exporters different.
var lastName atomic.Int64

func brokerName(testing.TB) string { return fmt.Sprintf("node:exporter %d", lastName.Inc()) }

// testContext returns a context that ends with the test, or when that waits for too long.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

func openNode(t testing.TB, o Options) *Node {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(m string) { t.Errorf("warned: %s", m) }
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = testwait.Limit / 2 // no machine is so busy
	}
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Manager.RDMADevice == "fake" { // before anybody can have asked for it
		n.fabric.setup.Lock()
		n.fabric.opened, n.fabric.device = true, newFakeDevice()
		n.fabric.setup.Unlock()
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// socket returns an address in a directory of the test.
func socket(t testing.TB) string { return "unix:" + filepath.Join(testwait.ShortDir(t), "s") }

// transport is a way in which two nodes can be connected.
type transport struct {
	name  string
	alloc bool // exports lie in memory of Alloc
	// options returns those of a node with a name, and where it listens.
	options func(t testing.TB, name string) Options
	listen  func(t testing.TB) string
}

const testToken = "0123456789abcdef0123456789abcdef"

// loopbackPort is an address of this machine, or of this guest of two.
func loopbackPort(testing.TB) string { return "tcp:" + machineAddress() + ":0" }

func machineAddress() string {
	if os.Getenv("TESTBED_NODES") == "2" {
		return os.Getenv("TESTBED_ADDR")
	}
	return "127.0.0.1"
}

var transports = []transport{
	{"shared memory", true, func(_ testing.TB, name string) Options { return Options{Name: name} }, socket},
	{"unix socket", false, func(_ testing.TB, name string) Options { return Options{Name: name} }, socket},
	{"tcp with token", true, func(_ testing.TB, name string) Options {
		return Options{Name: name, Token: testToken, NoRDMA: true}
	}, loopbackPort},
	{"tcp with certificates", false, func(t testing.TB, name string) Options {
		c := certificateOf(t, name)
		return Options{Certificate: &c, Authorities: testAuthority.pool, NoRDMA: true}
	}, loopbackPort},
	{"rdma", true, func(t testing.TB, name string) Options {
		rdmatest.Need(t)
		return Options{Name: name, Token: testToken}
	}, loopbackPort},
	{"fake rdma", true, func(_ testing.TB, name string) Options {
		return Options{Name: name, Token: testToken, Manager: pinwheel.Options{
			RDMADevice: "fake", Watch: "none", Costs: verbs.DefaultCosts,
		}}
	}, loopbackPort},
	{"broker", true, func(_ testing.TB, name string) Options {
		return Options{Name: name, Broker: brokertest.Socket}
	}, brokerName},
}

func transportOf(t testing.TB, name string) transport {
	t.Helper()
	k := slices.IndexFunc(transports, func(tr transport) bool { return tr.name == name })
	if k < 0 {
		t.Fatalf("there is no transport %q", name)
	}
	return transports[k]
}

// authority issues the certificates of tests.
type authority struct {
	certificate *x509.Certificate
	key         ed25519.PrivateKey
	pool        *x509.CertPool
}

// newAuthority makes one that others make, too, of the same seed: two guests have the same one.
func newAuthority(seed string) *authority {
	key := ed25519.NewKeyFromSeed([]byte(seed)[:ed25519.SeedSize])
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.certificate = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		panic(err)
	}
	a.pool.AddCert(a.certificate)
	return a
}

var testAuthority = newAuthority(testToken)

func certificateOf(t testing.TB, name string) tls.Certificate {
	return testAuthority.issue(t, name, time.Now().Add(time.Hour))
}

func (a *authority) issue(t testing.TB, name string, until time.Time) tls.Certificate {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(machineAddress())},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// world is an exporter, an importer that it permits, and the memory of one export.
type world struct {
	transport
	exporter, importer *Node
	address            string // of the exporter
}

// begin connects two nodes, which are called receiver and sender.
func (tr transport) begin(t testing.TB, change ...func(*Options)) *world {
	testwait.Bound(t)
	o := tr.options(t, "receiver")
	o.Listen = []string{tr.listen(t)}
	for _, c := range change {
		c(&o)
	}
	w := &world{transport: tr, exporter: openNode(t, o)}
	w.address = w.exporter.Addresses()[0]
	w.importer = w.node(t, "sender")
	return w
}

// node opens another importer.
func (w *world) node(t testing.TB, name string) *Node { return openNode(t, w.options(t, name)) }

// memory returns memory that the race detector does not watch: peers write to it.
func (w *world) memory(t testing.TB, size int) []byte {
	t.Helper()
	if w.alloc {
		b, err := w.exporter.Alloc(uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) }) // before the node closes: Unexport first
	return b
}

var sender = Permissions{Peers: []string{"sender"}}

func (w *world) export(t testing.TB, id uint32, memory []byte, p Permissions, o ExportOptions) *Export {
	t.Helper()
	e, err := w.exporter.Export(id, memory, p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if gone, err := e.UnexportAsync(); err == nil {
			<-gone
		}
	})
	return e
}

func (w *world) imports(t testing.TB, id uint32) *Import {
	t.Helper()
	i, err := w.importer.Import(testContext(t), id, w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t, i)
	return i
}

// settle waits until messages go the way that the transport is about: at first they go through the connection.
func (tr transport) settle(t testing.TB, i *Import) {
	t.Helper()
	if strings.HasSuffix(tr.name, "rdma") {
		viaRDMA(t, i)
	}
}

// viaRDMA waits until messages go by RDMA. It asks again for a lease that has ended meanwhile, unused, as it does while
// the machine stops this process for a second.
func viaRDMA(t testing.TB, i *Import) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	defer cancel() // not when the test ends: a soak comes here often
	testwait.Until(t, "RDMA to the export", func() bool { return i.AwaitRDMA(ctx) })
}

// pair is export 1 of size bytes, and its import.
func (w *world) pair(t testing.TB, size int, o ExportOptions) (memory []byte, e *Export, i *Import) {
	t.Helper()
	memory = w.memory(t, size)
	e = w.export(t, 1, memory, sender, o)
	return memory, e, w.imports(t, 1)
}

// begun waits until a node has asked for an export.
func begun(t testing.TB, n *Node, id uint32, address string) {
	t.Helper()
	testwait.Until(t, "the request of the import", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		d := n.outbound[address]
		if d == nil || d.out == nil {
			return false
		}
		d.out.mu.Lock()
		defer d.out.mu.Unlock()
		for _, i := range d.out.imports {
			if i.export == id {
				return true
			}
		}
		return false
	})
}

func send(t testing.TB, i *Import, src string, off uint64, o SendOptions) {
	t.Helper()
	if err := i.Send(testContext(t), []byte(src), off, o); err != nil {
		t.Fatal(err)
	}
}

// arrives waits until memory has a string at off, by looking.
func arrives(t testing.TB, memory []byte, off int, want string) {
	t.Helper()
	testwait.Until(t, want+" arrives", func() bool { return string(memory[off:off+len(want)]) == want },
		func() any { return strings.ToValidUTF8(string(memory[off:off+len(want)]), "?") })
}

func wait(t testing.TB, e *Export) Notification {
	t.Helper()
	n, err := e.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
