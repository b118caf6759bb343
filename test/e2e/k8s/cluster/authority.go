package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs every certificate of one cluster.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(certFile string) (*authority, error) {
	a := &authority{certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: "test cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	err := a.issue(a.certificate, certFile, "")
	return a, err
}

// server and client are the kinds of certificates in a cluster.
func server() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "127.0.0.1"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(hopAddress)},
		DNSNames:    []string{"kubernetes"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func client(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// issue makes a key and a certificate that the authority signs. The authority's own
// certificate is self-signed.
func (a *authority) issue(template *x509.Certificate, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template == a.certificate {
		a.key = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	if template == a.certificate {
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	if err = writePEM(certFile, "CERTIFICATE", der); err != nil || keyFile == "" {
		return err
	}
	return writeKey(keyFile, key)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
