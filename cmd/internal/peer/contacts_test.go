package peer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// TestStaleCalls: a call that learns a site's address does not undo other changes of the contact
// since the call began.
func TestStaleCalls(t *testing.T) {
	did := identity.New().ID().String()
	const far = "/ip4/203.0.113.7/udp/8475/quic-v1"
	was := Contact{Name: "shed", DID: did, Addresses: []string{"192.0.2.1:1", far}, Grant: []byte("old")}
	for name, since := range map[string]func(Person) error{
		"owned":       func(p Person) error { return p.Contacts().SetOwned("shed") },
		"granted":     func(p Person) error { return p.Contacts().store(Contact{Name: "shed", DID: did, Grant: []byte("new")}) },
		"renamed":     func(p Person) error { return p.Contacts().store(Contact{Name: "barn", DID: did, Owner: true}) },
		"found again": func(p Person) error { p.Contacts().updateNear(did, []string{"192.0.2.3:1"}); return nil },
		"forgotten":   func(p Person) error { return p.Contacts().Forget("shed") },
	} {
		t.Run(name, func(t *testing.T) {
			p := Person{state.Folder(t.TempDir())}
			if err := p.Contacts().store(was); err != nil {
				t.Fatal(err)
			}
			if err := since(p); err != nil {
				t.Fatal(err)
			}
			want, _ := p.Contacts().List()
			p.Contacts().updateNear(did, []string{"192.0.2.2:1"})
			p.Contacts().updateFar(did, []string{"/ip4/203.0.113.8/udp/8475/quic-v1"})
			got, err := p.Contacts().List()
			if err != nil || len(got) != len(want) {
				t.Fatalf("%+v %v, want %+v", got, err, want)
			}
			for i, k := range got {
				near, _ := splitAddresses(want[i].Addresses)
				at := append(append([]string{"192.0.2.2:1"}, near...), "/ip4/203.0.113.8/udp/8475/quic-v1")
				if k.Name != want[i].Name || k.Owner != want[i].Owner || string(k.Grant) != string(want[i].Grant) || !slices.Equal(k.Addresses, at) {
					t.Errorf("%+v, was %+v", k, want[i])
				}
			}
		})
	}
}

// TestFilesOfAPerson: nothing is lost of what many commands write at once, who have one key.
func TestFilesOfAPerson(t *testing.T) {
	p := Person{state.Folder(t.TempDir())}
	const many = 24
	var all sync.WaitGroup
	keys := make([]identity.ID, many)
	for i := range many {
		all.Go(func() {
			key, err := p.Key()
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = key.ID()
			did := identity.New().ID().String()
			if err := p.Contacts().store(Contact{Name: fmt.Sprint("site-", i), DID: did, Addresses: []string{"192.0.2.1:1"}}); err != nil {
				t.Error(err)
			}
			r, err := discovery.NewRealm(fmt.Sprint("realm-", i))
			if err != nil {
				t.Error(err)
			}
			if _, err := p.Realms().Join(Realm{Realm: r.String()}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sites, err := p.Contacts().List()
	realms, err2 := p.Realms().List()
	if err != nil || err2 != nil || len(sites) != many || len(realms) != many {
		t.Errorf("%d sites and %d realms of %d: %v %v", len(sites), len(realms), many, err, err2)
	}
	for _, k := range sites {
		if len(k.Addresses) != 1 {
			t.Errorf("where %s is has been lost", k.Name)
		}
	}
	for _, id := range keys {
		if id != keys[0] {
			t.Fatal("those who begin at once have several keys")
		}
	}
}

// TestFilesAreHeld: a suspended process that holds the lock of the person's files does not delay
// calls, such as a stop, that learn a new address.
func TestFilesAreHeld(t *testing.T) {
	p := Person{state.Folder(t.TempDir())}
	did := identity.New().ID().String()
	const far = "/ip4/203.0.113.7/udp/8475/quic-v1"
	if err := p.Contacts().store(Contact{Name: "shed", DID: did, Addresses: []string{"192.0.2.1:1", far}}); err != nil {
		t.Fatal(err)
	}
	lock, err := p.Folder.OpenLockFile(lockName)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := state.TryLock(lock); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do   func()
		most time.Duration
	}{
		"nothing new": {func() {
			p.Contacts().updateFar(did, []string{far})
			p.Contacts().updateNear(did, []string{"192.0.2.1:1"})
		}, 0},
		"another place":  {func() { p.Contacts().updateNear(did, []string{"192.0.2.2:1"}) }, time.Second},
		"a site unknown": {func() { p.Contacts().updateNear(identity.New().ID().String(), []string{"192.0.2.2:1"}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				if c.do(); time.Since(begun) > c.most {
					t.Errorf("it takes %v", time.Since(begun))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if err := p.Contacts().Forget("shed"); err == nil {
			t.Error("it is forgotten while another process changes the file")
		}
	})
	lock.Close() // as the kernel does where the process is killed
	if err := p.Contacts().Forget("shed"); err != nil {
		t.Error(err)
	}
}
