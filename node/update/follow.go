package update

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/go-json-experiment/json"

	"agentsite/node/identity"
)

const followName = "channel.json"

// Follow holds which channel a board follows and what it has seen of it.
type Follow struct {
	Form    int               `json:"form"`
	Base    string            `json:"base,omitzero"`    // the base URL of the releases; "" for the program's
	Channel string            `json:"channel,omitzero"` // "" for stable
	Serials map[string]uint64 `json:"serials,omitzero"` // the greatest serial seen of each channel
	Keys    []identity.ID     `json:"keys,omitzero"`    // the release keys of the program that saw them
}

const followForm = 1

// Follow reads which channel the superuser chose. Without a file it returns the zero choice.
func (p Programs) Follow() (Follow, error) {
	f := Follow{Form: followForm}
	err := ReadJSON(p.Dir, followName, &f)
	if err == nil && f.Form != followForm {
		err = fmt.Errorf("it has version %d, and this program reads %d", f.Form, followForm)
	}
	if err != nil {
		return Follow{}, fmt.Errorf(
			"%s cannot be used: %w; delete it, and choose the channel again with --channel", p.path(followName), err,
		)
	}
	return f, nil
}

// SetFollow stores the superuser's choice, and keeps the serials.
func (p Programs) SetFollow(base, channel string) error {
	f, err := p.Follow()
	if err != nil || f.Base == base && f.Channel == channel {
		return err
	}
	f.Base, f.Channel = base, channel
	return WriteJSON(p.Dir, followName, f)
}

// See refuses a channel that is another one, or older than one seen before, and remembers its serial.
// The service's user, who cannot write to the folder, remembers it in the inbox: the superuser does
// not read that, and so the service cannot make the superuser refuse a channel. For other users the
// error is a permission's. Serials count for as long as the program has the same release keys: with the
// greatest number, a key that was stolen would otherwise block the channels of its successor for ever.
func (p Programs) See(c Channel, name string, keys []identity.ID) error {
	f, err := p.Follow()
	if err == nil {
		f.limit(keys)
		err = c.Check(name, f.Serials[name])
	}
	if err != nil {
		return err
	}
	err = p.see(p.Dir, f, c)
	if !readOnly(err) {
		return err
	}
	seen := p.seenByService()
	seen.limit(keys)
	if err := c.Check(name, seen.Serials[name]); err != nil {
		return err
	}
	return p.see(p.path(inboxName), Follow{Form: followForm, Serials: seen.Serials, Keys: keys}, c)
}

// limit forgets the serials that a program with other release keys saw.
func (f *Follow) limit(keys []identity.ID) {
	if !slices.Equal(f.Keys, keys) {
		f.Serials, f.Keys = nil, keys
	}
}

func (p Programs) see(folder string, f Follow, c Channel) error {
	if f.Serials == nil {
		f.Serials = make(map[string]uint64)
	}
	f.Serials[c.Name] = c.Serial
	return WriteJSON(folder, followName, f)
}

// seenByService reads the serials in the inbox, and takes a file that it cannot read for none.
func (p Programs) seenByService() (f Follow) {
	inbox, err := os.OpenRoot(p.path(inboxName))
	if err != nil {
		return f
	}
	defer inbox.Close()
	file, err := OpenFile(inbox, followName)
	if err != nil {
		return f
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4<<10))
	if err != nil || json.Unmarshal(text, &f) != nil || f.Form != followForm {
		return Follow{}
	}
	return f
}

// readOnly reports whether an error says that this process cannot write there.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// StageRelease is Stage for the update of a channel's release, and refuses every other file.
func (p Programs) StageRelease(r io.Reader, rules Rules, of ChannelRelease) (Release, error) {
	file, ok := of.File(rules.Target)
	if !ok {
		return Release{}, Refused{fmt.Errorf("%s has no update for %s: install its package", of.Version, rules.Target)}
	}
	u, err := p.Check(&exactReader{r: r, file: file, hash: sha256.New()}, rules)
	if err == nil && (u.Version != of.Version || u.Sequence != of.Sequence) {
		err = Refused{fmt.Errorf("it is %s, and the channel names it %s", u.Version, of.Version)}
	}
	if err != nil {
		return Release{}, err
	}
	return p.stage(u)
}

// exactReader refuses a file of another size or hash, before it reports its end.
type exactReader struct {
	r    io.Reader
	file ChannelFile
	hash hash.Hash
	n    int64
}

func (e *exactReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.hash.Write(b[:n])
	e.n += int64(n)
	if e.n > e.file.Size || err == io.EOF && (e.n != e.file.Size || hex.EncodeToString(e.hash.Sum(nil)) != e.file.SHA256) {
		return 0, Refused{errors.New("not the file that the channel names: try again later, or report this to the operator " +
			"of the server")}
	}
	return n, err
}
