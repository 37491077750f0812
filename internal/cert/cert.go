// Package cert makes the certificates of tests and proofs.
package cert

import (
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

// Write makes a certificate for localhost and 127.0.0.1 that signs itself, for
// servers and clients, and writes it and its key, as PEM that only the owner can
// read. It holds for a day.
func Write(certFile, keyFile string, serial int64) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := local(serial)
	template.KeyUsage, template.IsCA = x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign, true
	if err := sign(certFile, template, template, key, key); err != nil {
		return err
	}
	return writeKey(keyFile, key)
}

// Issue makes an authority and a certificate like Write's that it signed, and
// writes the certificates of both and the key of the second. Clients exist that
// take no certificate of an authority for that of a server.
func Issue(authorityFile, certFile, keyFile string) error {
	parentKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	parent := local(1)
	parent.Subject.CommonName, parent.IPAddresses, parent.DNSNames, parent.ExtKeyUsage = "pawl test authority", nil, nil, nil
	parent.KeyUsage, parent.IsCA = x509.KeyUsageCertSign, true
	if err := sign(authorityFile, parent, parent, parentKey, parentKey); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := sign(certFile, local(2), parent, key, parentKey); err != nil {
		return err
	}
	return writeKey(keyFile, key)
}

// local is what a certificate of this machine says.
func local(serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "pawl test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
}

// sign writes a certificate for key that the parent signed.
func sign(file string, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)
}
