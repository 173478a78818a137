package main

import (
	"bytes"
	"testing"

	"agentsite/node/identity"
)

// TestSSHSignature: the signature and the list of signers have the same bytes each time; e2e/install verifies
// them with ssh-keygen.
func TestSSHSignature(t *testing.T) {
	key := identity.New()
	one, err := sshSignature(key, []byte("text"))
	two, err2 := sshSignature(key, []byte("text"))
	other, err3 := sshSignature(key, []byte("texu"))
	if err != nil || err2 != nil || err3 != nil || !bytes.Equal(one, two) || bytes.Equal(one, other) {
		t.Errorf("%v %v %v\n%s\n%s\n%s", err, err2, err3, one, two, other)
	}
}
