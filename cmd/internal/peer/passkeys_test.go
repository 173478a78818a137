package peer

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"agentsite/node/state"
	"agentsite/transport/passkey"
)

// TestPasskeys: the file is the user's alone, loses none of two changes at once, and is never of a version that is not
// known.
func TestPasskeys(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "owner")
	keys := Person{state.Folder(folder)}.Passkeys()
	if all, err := keys.List(); err != nil || len(all) > 0 {
		t.Fatal(all, err)
	}
	var changes sync.WaitGroup
	for n := range 8 {
		changes.Go(func() {
			err := keys.Change(func(all []Passkey) ([]Passkey, error) {
				c := passkey.Credential{ID: []byte{byte(n)}, Key: []byte("key"), Count: uint32(n)}
				return append(all, Passkey{Name: strconv.Itoa(n), Credential: c}), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	changes.Wait()
	all, err := keys.List()
	if err != nil || len(all) != 8 || string(all[3].Key) != "key" || strconv.Itoa(int(all[3].ID[0])) != all[3].Name {
		t.Fatalf("%+v %v", all, err)
	}
	file := filepath.Join(folder, passkeysName)
	if info, err := os.Stat(file); err != nil || state.OthersCanRead(info.Mode()) {
		t.Error(info.Mode(), err)
	}
	failed := errors.New("no")
	if err := keys.Change(func([]Passkey) ([]Passkey, error) { return nil, failed }); err != failed {
		t.Error(err)
	}
	if all, err := keys.List(); err != nil || len(all) != 8 {
		t.Error(len(all), err)
	}
	later := []byte(`{"version":2,"passkeys":[]}`)
	if err := os.WriteFile(file, later, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := keys.List(); err == nil {
		t.Errorf("a later version is read: %+v", all)
	}
	err = keys.Change(func([]Passkey) ([]Passkey, error) { return nil, nil })
	if text, _ := os.ReadFile(file); err == nil || string(text) != string(later) {
		t.Errorf("a later version is replaced by %s", text)
	}
}
