// Package grpc shows that gRPC runs over comm/vmmc/stream unchanged. It is a module of its own: nothing else needs gRPC.
package grpc

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
)

// Single calls, many at a time, and a call that streams.
func TestGRPCRunsUnchanged(t *testing.T) {
	dir := t.TempDir()
	for name, listen := range map[string][2]string{
		"shared memory": {"unix:" + filepath.Join(dir, "a"), "unix:" + filepath.Join(dir, "b")},
		"TLS":           {"tcp:127.0.0.1:0", "tcp:127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			client, status := connect(t, listen)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 200 {
						r, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
						if err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
							t.Error(r, err)
							return
						}
					}
				})
			}
			const service = "pump"
			w, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
				grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN, // nobody has said anything
				grpc_health_v1.HealthCheckResponse_SERVING,
				grpc_health_v1.HealthCheckResponse_NOT_SERVING,
			} {
				if want != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
					status.SetServingStatus(service, want)
				}
				if r, err := w.Recv(); err != nil || r.Status != want {
					t.Fatalf("%v, %v, not %v", r, err, want)
				}
			}
			all.Wait()
		})
	}
}

// connect returns a client of a server that tells its status.
func connect(t *testing.T, listen [2]string) (grpc_health_v1.HealthClient, *health.Server) {
	t.Helper()
	const service = 80
	var nodes [2]*vmmc.Node
	for k, name := range [2]string{"client", "server"} {
		o := vmmc.Options{Name: name, Listen: []string{listen[k]}, Token: "0123456789abcdef0123456789abcdef", NoRDMA: true}
		n, err := vmmc.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes[k] = n
	}
	o := stream.Options{Peers: vmmc.Permissions{Peers: []string{"client", "server"}}}
	l, err := stream.Listen(nodes[1], service, o)
	if err != nil {
		t.Fatal(err)
	}
	server, status := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, status)
	go func() { _ = server.Serve(l) }() // until Stop
	t.Cleanup(server.Stop)
	c, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return stream.Dial(ctx, nodes[0], nodes[1].Addresses()[0], service, o)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return grpc_health_v1.NewHealthClient(c), status
}
