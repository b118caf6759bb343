package collect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

const logLine = "2026-11-27T10:00:00.123Z|00012|bridge|INFO|added interface eth0 on port 1\n"

// TestNodesOfLogs checks to which node the logs of bundles belong, whose folders name it.
func TestNodesOfLogs(t *testing.T) {
	for what, c := range map[string]struct {
		source map[string]string
		want   map[string]string // the log of each node
	}{
		"kubectl ko log": {map[string]string{
			"ko/n1/linux/addr.log": "1: lo: <LOOPBACK> mtu 65536\n", "ko/n1/openvswitch/ovs-vswitchd.log": logLine,
			"ko/n2/linux/addr.log": "1: lo: <LOOPBACK> mtu 65536\n", "ko/n2/openvswitch/ovs-vswitchd.log": "other " + logLine,
		}, map[string]string{"n1": "ovs-vswitchd/ovs-vswitchd.log", "n2": "ovs-vswitchd/ovs-vswitchd.log"}},
		"agents of Antrea": {map[string]string{
			"agent_n1/agentinfo": "noderef:\n  name: n1\n", "agent_n1/logs/ovs/ovsdb-server.log": logLine,
			"agent_n2/agentinfo": "noderef:\n  name: n2\n", "agent_n2/logs/ovs/ovsdb-server.log": logLine,
		}, map[string]string{"n1": "ovsdb-server/ovsdb-server.log", "n2": "ovsdb-server/ovsdb-server.log"}},
		"a folder for each": {map[string]string{
			"n1/ovn-controller.log": logLine, "n2/ovn-controller.log": logLine,
		}, map[string]string{"n1": "ovn-controller/ovn-controller.log", "n2": "ovn-controller/ovn-controller.log"}},
		"Harvester": {map[string]string{
			"bundle/logs/kube-system/ovs-ovn-a/openvswitch.log": logLine,
		}, map[string]string{"": "openvswitch/ovs-ovn-a.log"}},
	} {
		t.Run(what, func(t *testing.T) {
			written, _, dir, err := takeFiles(t, Options{}, folder(t, c.source))
			if err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, len(written), len(c.want), written)
			for node, log := range c.want {
				if files.Read(t, filepath.Join(dir, node, "host/logs", log)) == "" {
					t.Errorf("the log %s of %q is empty", log, node)
				}
			}
		})
	}
}

// TestSecretsOfTheMachineStay checks that of certificates and of nova.conf only what is public is kept.
func TestSecretsOfTheMachineStay(t *testing.T) {
	certificate, key := certificate(t)
	const nova = "[DEFAULT]\ntransport_url = rabbit://nova:hush@10.0.0.1\n[compute]\ncpu_dedicated_set = 2-10\ncpu_shared_set=0,1\n[libvirt]\ncpu_shared_set=9\n"
	written, _, dir, err := takeFiles(t, Options{}, folder(t, map[string]string{
		"hostname": "n1\n", "var/log/openvswitch/ovs-vswitchd.log": logLine, "version.txt": "sosreport: 4.8\n",
		"etc/nova/nova.conf": nova,
		"etc/ovn/cert_host":  certificate, "etc/ovn/both.pem": key + certificate, "etc/openvswitch/key.pem": key,
		"sos_commands/ovn_host/openssl_x509_-in_.etc.ovn.ovn-chassis.crt_-noout_-dates": "notBefore=Nov 27 10:00:00 2026 GMT\nnotAfter=Dec  7 10:00:00 2026 GMT\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, written["n1"].Collections[0].Kind, workdir.Host)
	sets := files.Read(t, filepath.Join(dir, "host", workdir.HostCPUSets))
	expect.Equal(t, sets, "etc/nova/nova.conf\t[compute] cpu_dedicated_set=2-10\netc/nova/nova.conf\t[compute] cpu_shared_set=0,1\n")
	dates := files.Read(t, filepath.Join(dir, "host", workdir.HostCertificates))
	expect.Equal(t, strings.Count(dates, "\n"), 2, dates)
	for _, want := range []string{`etc/ovn/cert_host	subject="CN=n1"	issuer="CN=n1"`, "notAfter=2026-12-07T10:00:00Z"} {
		if !strings.Contains(dates, want) {
			t.Errorf("%q is not in %q", want, dates)
		}
	}
	for _, file := range written["n1"].Collections[0].Files {
		text := files.Read(t, filepath.Join(dir, file.Path))
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, "hush") {
			t.Errorf("%s has a secret", file.Path)
		}
	}
}

// TestLogsBesideData checks that a workdir keeps the logs of its own Open vSwitch and no others.
func TestLogsBesideData(t *testing.T) {
	dir := t.TempDir()
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	collect := func(options Options, source map[string]string) error {
		_, _, err := Collect(t.Context(), wd, Files{Paths: []string{folder(t, source)}}, options)
		return err
	}
	log := func() string { return files.Read(t, filepath.Join(dir, "host/logs/ovs-vswitchd/ovs-vswitchd.log")) }
	controller := map[string]string{"ovnnb_db.db": database("OVN_Northbound", 1), "ovs-vswitchd.log": "a" + logLine}
	compute := map[string]string{"br0.flows.dump": "NXST_FLOW reply (xid=0x4):\n cookie=0x0, priority=0 actions=drop\n",
		"ovs-vswitchd.log": "b" + logLine}
	alone := map[string]string{"ovs-vswitchd.log": "c" + logLine}
	if err := collect(Options{}, controller); err != nil || log() != "a"+logLine {
		t.Errorf("of a controller: %v, %q", err, log())
	}
	if err := collect(Options{}, compute); err != nil || log() != "b"+logLine {
		t.Errorf("of a compute node: %v, %q", err, log())
	}
	if err := collect(Options{Force: true}, controller); err != nil || log() != "b"+logLine {
		t.Errorf("of a controller again: %v, %q", err, log())
	}
	if err := collect(Options{}, alone); !errors.Is(err, ErrOccupied) || log() != "b"+logLine {
		t.Errorf("logs alone: %v, %q", err, log())
	}
	if err := collect(Options{Force: true}, alone); err != nil || log() != "c"+logLine {
		t.Errorf("logs alone, with force: %v, %q", err, log())
	}
}

// certificate returns a certificate of n1 and its key.
func certificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "n1"}, NotBefore: time.Now(),
		NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}
