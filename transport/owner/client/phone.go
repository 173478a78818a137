package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/node/acts"
	"agentsite/node/identity"
)

// What a phone is granted without other words.
const (
	PhoneWords = "read *, set *, stop"
	PhoneUntil = "90d"
)

// phonePatience is longer than a site waits for a phone.
const phonePatience = 3 * time.Minute

// Phone is a permission in words for the phone that an owner lets in. The zero time is for ever.
type Phone struct {
	Name      string // "" for one of what the browser calls itself
	Words     string
	Until     time.Time
	ByAddress bool                                  // the link has the site's address in place of its name
	At        string                                // or this name, with its port; "" for the site's own
	Key       func() (identity.Key, error)          // the owner's
	Show      func(link string) error               // shows the phone the link, which counts once
	Confirm   func(context.Context, PhoneKey) error // asks the person; any error refuses
}

// PhoneKey is the key of the browser that opened the link.
type PhoneKey struct {
	DID     string
	Letters string // the first of the key, which the browser shows, too
	Name    string // what it is called, once it is granted something
}

// SignPhone signs a permission for the key of the phone that opens a link, once the person says that it is theirs.
// It returns the grant for the site and the text for the grant's holder.
func (c *Client) SignPhone(ctx context.Context, on Access, p Phone) (signed acts.Signed, to, text string, err error) {
	code := rand.Text()
	link := phoneLink(on.At, code, p.ByAddress, p.At)
	if link == "" {
		return signed, "", "", errors.New(
			"a phone needs HTTPS, which this site does not serve: agentsite run --listen-https :8474")
	}
	if err := on.checkHolderName(p.Name, identity.ID{}); err != nil {
		return signed, "", "", err
	}
	if err := p.Show(link); err != nil {
		return signed, "", "", err
	}
	waiting, cancel := context.WithTimeout(ctx, phonePatience)
	defer cancel()
	key, err := c.awaitPhone(waiting, code)
	if err != nil {
		return signed, "", "", err
	}
	if slices.ContainsFunc(on.Owners, func(o acts.Owner) bool { return o.DID == key.DID }) {
		return signed, "", "", errors.New("the code was shown by the key of an owner: nothing is granted")
	}
	key.Name = cmp.Or(p.Name, on.freeName(key.Name, "phone"))
	if err := p.Confirm(ctx, key); err != nil {
		return signed, "", "", err
	}
	signed, text, err = SignGrant(on, p.Key, key.DID, key.Name, p.Words, p.Until)
	return signed, key.DID, text, err
}

// awaitPhone waits for a browser that shows the site a code, and returns its key.
func (c *Client) awaitPhone(ctx context.Context, code string) (PhoneKey, error) {
	shown, err := Call(ctx, c, acts.PhoneAct, acts.Name{Name: code})
	if err != nil {
		return PhoneKey{}, err
	}
	key, err := identity.Parse(shown.DID)
	return PhoneKey{key.String(), key.Short(), shown.Name}, err
}

// phoneLink returns a link with a code to the page at a host, or else at one of a site's addresses, "" for none. The
// last is the name that derives from the site's key, which stays when the address changes, and with it what the
// browser keeps.
func phoneLink(addresses []string, code string, byAddress bool, host string) string {
	near := slices.DeleteFunc(slices.Clone(addresses), func(at string) bool { return strings.HasPrefix(at, "/") })
	if len(near) == 0 {
		return ""
	}
	at := near[len(near)-1]
	if byAddress {
		at = near[0]
	}
	return "https://" + cmp.Or(host, at) + "/#k=" + code
}
