// Package check holds the manifests of Kubernetes against its types, and against what they may ask of a node. It is a
// module by itself, so that Pinwheel does not depend on Kubernetes.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	manifests = "../.."
	unit      = "../../../../cmd/pinwheel/systemd/system/pinwheel-watchd.service"
)

// mayWrite is the only directory of a node that a container may write, and only the watch service does.
const mayWrite = "/run/pinwheel"

// objects decodes a file. A field that its type lacks, or that is there twice, is an error.
func objects(file []byte) (all []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(file)))
	defer documents.Close()
	text := make([]byte, 1<<16)
	for {
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(text[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
}

// check says what is wrong with an object. capabilities are those that the watch service may have.
func check(object runtime.Object, capabilities []string) error {
	switch o := object.(type) {
	case *corev1.Namespace:
		return checkName(o.ObjectMeta)
	case *appsv1.DaemonSet:
		selector, err := metav1.LabelSelectorAsMap(o.Spec.Selector)
		if err != nil {
			return err
		}
		errs := []error{checkName(o.ObjectMeta), checkPod(&o.Spec.Template.Spec, capabilities)}
		for key, value := range selector {
			if o.Spec.Template.Labels[key] != value {
				errs = append(errs, fmt.Errorf("pods have no label %s=%s, which the selector wants", key, value))
			}
		}
		if p := o.Spec.Template.Spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
			errs = append(errs, fmt.Errorf("a DaemonSet with restartPolicy %s", p))
		}
		return errors.Join(errs...)
	case *batchv1.Job:
		err := errors.Join(checkName(o.ObjectMeta), checkPod(&o.Spec.Template.Spec, capabilities))
		if p := o.Spec.Template.Spec.RestartPolicy; p != corev1.RestartPolicyNever {
			err = errors.Join(err, fmt.Errorf("a job with restartPolicy %q", p))
		}
		return err
	}
	return fmt.Errorf("no %T is expected here", object)
}

func checkName(m metav1.ObjectMeta) error {
	if wrong := validation.IsDNS1123Label(m.Name); wrong != nil {
		return fmt.Errorf("name %q: %s", m.Name, wrong[0])
	}
	return nil
}

func checkPod(p *corev1.PodSpec, capabilities []string) error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
		fail("the pod gets a token of the cluster")
	}
	if len(p.Containers) != 1 || len(p.InitContainers) != 0 {
		fail("%d containers and %d before them, not one", len(p.Containers), len(p.InitContainers))
	}
	volumes := map[string]*corev1.Volume{}
	for i := range p.Volumes {
		volumes[p.Volumes[i].Name] = &p.Volumes[i]
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		isWatchd := slices.Equal(c.Args, []string{"watchd"})
		if readsRanks := len(c.Args) > 0 && c.Args[0] == "metrics"; (p.HostPID || p.HostNetwork || p.HostIPC) && !readsRanks {
			fail("%s is in namespaces of the node", c.Name)
		}
		for _, m := range c.VolumeMounts {
			v := volumes[m.Name]
			if v == nil {
				fail("%s mounts %s, and there is no such volume", c.Name, m.Name)
				continue
			}
			delete(volumes, m.Name)
			if v.HostPath != nil && !m.ReadOnly && (!isWatchd || v.HostPath.Path != mayWrite) {
				fail("%s may write to %s of the node", c.Name, v.HostPath.Path)
			}
			if !filepath.IsAbs(m.MountPath) {
				fail("%s mounts %s at %q", c.Name, m.Name, m.MountPath)
			}
		}
		if c.Image == "" || c.Resources.Limits.Memory().IsZero() {
			fail("%s has no image, or no limit of memory", c.Name)
		}
		allowed := []string(nil)
		if isWatchd {
			allowed = capabilities
		}
		if err := checkRights(c.SecurityContext, allowed); err != nil {
			fail("%s: %w", c.Name, err)
		}
	}
	for name := range volumes {
		fail("nothing mounts volume %s", name)
	}
	return errors.Join(errs...)
}

// checkRights wants the rights of a container to be these capabilities, and no others.
func checkRights(s *corev1.SecurityContext, capabilities []string) error {
	switch {
	case s == nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
		return errors.New("it keeps the capabilities that a runtime gives by default")
	case s.Privileged != nil && *s.Privileged:
		return errors.New("it is privileged")
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
		return errors.New("it allows the escalation of privileges")
	case s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		return errors.New("it has another seccomp profile than the runtime's")
	case s.RunAsUser == nil || *s.RunAsUser == 0 && len(capabilities) == 0:
		return errors.New("it runs as root, or as whom the image says")
	}
	var added []string
	for _, c := range s.Capabilities.Add {
		added = append(added, "CAP_"+string(c))
	}
	slices.Sort(added)
	if !slices.Equal(added, capabilities) {
		return fmt.Errorf("its capabilities are %v, not %v", added, capabilities)
	}
	return nil
}

// ofUnit returns the capabilities that the unit of systemd gives the watch service, sorted.
func ofUnit(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no CapabilityBoundingSet", unit)
	}
	return slices.Sorted(slices.Values(strings.Fields(string(found[1]))))
}

func TestManifests(t *testing.T) {
	files, err := filepath.Glob(manifests + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s (%v)", manifests, err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := objects(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, o := range all {
			if err := check(o, ofUnit(t)); err != nil {
				t.Errorf("%s: %T: %v", name, o, err)
			}
		}
	}
}

// Each of these changes is an error, so what passes above can fail.
func TestWrongManifestsAreFound(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"watchd.yaml", "readOnly: true", "readonly: true", "unknown field"},
		{"watchd.yaml", "runAsUser: 0", "runAsUser: root", "cannot unmarshal"},
		{"watchd.yaml", "kind: DaemonSet", "kind: DemonSet", "no kind"},
		{"watchd.yaml", "apiVersion: apps/v1", "apiVersion: apps/v1beta9", "no kind"},
		{"watchd.yaml", "              readOnly: true\n", "", "may write to /sys/kernel/tracing"},
		{"watchd.yaml", "- name: socket\n          hostPath", "- name: sockets\n          hostPath", "no such volume"},
		{"watchd.yaml", "- PERFMON", "- SYS_ADMIN", "its capabilities are"},
		{"watchd.yaml", "              drop: [ALL]\n", "", "by default"},
		{"watchd.yaml", "allowPrivilegeEscalation: false", "privileged: true\n            allowPrivilegeEscalation: false", "privileged"},
		{"watchd.yaml", "        app.kubernetes.io/name: pinwheel-watchd\n    spec", "        name: watchd\n    spec", "no label"},
		{"watchd.yaml", "containers:", "hostPID: true\n      containers:", "namespaces of the node"},
		{"watchd.yaml", "containers:", "initContainers: [{name: first, image: first}]\n      containers:", "1 before them"},
		{"metrics.yaml", "runAsUser: 1000", "runAsUser: 0", "runs as root"},
		{"metrics.yaml", "name: pinwheel-metrics\n  namespace", "name: Pinwheel metrics\n  namespace", "name"},
		{"metrics.yaml", "limits:\n              memory: 256Mi", "limits: {}", "no limit of memory"},
		{"metrics.yaml", "automountServiceAccountToken: false", "enableServiceLinks: true", "already set"},
		{"job.yaml", "restartPolicy: Never", "restartPolicy: Always", "restartPolicy"},
		{"job.yaml", "              readOnly: true\n", "", "may write to /run/pinwheel"},
		{"job.yaml", "automountServiceAccountToken: false", "", "token"},
	} {
		file, err := os.ReadFile(filepath.Join(manifests, c.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(file, []byte(c.old)) {
			t.Errorf("%s has no %q", c.file, c.old)
			continue
		}
		all, err := objects(bytes.Replace(file, []byte(c.old), []byte(c.new), 1))
		for _, o := range all {
			err = errors.Join(err, check(o, ofUnit(t)))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q instead of %q: %v, want an error with %q", c.file, c.new, c.old, err, c.want)
		}
	}
}
