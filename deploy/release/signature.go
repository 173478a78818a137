package main

import (
	"crypto/sha512"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"agentsite/node/identity"
)

// Signatures of lists of hashes are those of ssh-keygen, which people have: OpenSSH's PROTOCOL.sshsig. A verifier names
// the signer and the namespace. A key's signatures for other purposes begin differently.
const (
	sshSigner    = "release@agentsite"
	sshNamespace = "agentsite-release"
)

// signFile writes the signature of a file beside it, with .sig behind its name.
func signFile(key identity.Key, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	signature, err := sshSignature(key, text)
	if err != nil {
		return err
	}
	return os.WriteFile(file+".sig", signature, 0o644)
}

func sshSignature(key identity.Key, text []byte) ([]byte, error) {
	signer, err := ssh.NewSignerFromKey(key.Private())
	if err != nil {
		return nil, err
	}
	hash := sha512.Sum512(text)
	signed := ssh.Marshal(struct{ Namespace, Reserved, Algorithm, Hash string }{
		sshNamespace, "", "sha512", string(hash[:])})
	signature, err := signer.Sign(nil, append([]byte("SSHSIG"), signed...))
	if err != nil {
		return nil, err
	}
	blob := ssh.Marshal(struct {
		Version                                             uint32
		Key, Namespace, Reserved, Algorithm, SignatureBytes string
	}{1, string(signer.PublicKey().Marshal()), sshNamespace, "", "sha512", string(ssh.Marshal(signature))})
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte("SSHSIG"), blob...)}), nil
}

// signers returns the file of allowed signers for ssh-keygen -Y verify, of keys as did:key.
func signers(keys []identity.ID) (string, error) {
	var text strings.Builder
	for _, id := range keys {
		blob := ssh.Marshal(struct{ Type, Key string }{ssh.KeyAlgoED25519, string(id[:])})
		key, err := ssh.ParsePublicKey(blob)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s namespaces=%q %s", sshSigner, sshNamespace, ssh.MarshalAuthorizedKey(key))
	}
	return text.String(), nil
}
