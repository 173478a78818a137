package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/cmd/internal/qr"
	"agentsite/node/access"
	"agentsite/node/acts"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (a *app) grantPhoneCommand() *cobra.Command {
	var until, name, at string
	var byAddress bool
	cmd := &cobra.Command{
		Use: "phone [PERMISSION]", Args: cobra.MaximumNArgs(1),
		Short: "Let a phone use the site's page, by a QR code",
		Long: `Show a QR code for a phone in the site's network: a link to the site's page with a code
that counts once, within two minutes. The browser that opens it makes a key of its own,
and shows the first letters of it. Compare them with those shown here and press Enter:
only then the key is granted the permission. agentsite grants lists it by the name that
you give it, or else that of its browser, and agentsite revoke NAME ends it.

Without PERMISSION, which agentsite grant explains, it is "` + ownerclient.PhoneWords + `", within the
site's limits. What only an owner may do, a phone never does, but for one thing: "use
approve" lets it answer calls that wait for you.

The browser warns that it does not know the site's certificate. Somebody in the network
can pose as the site there, have a key of their own granted in place of the phone's, see
what the phone sees, and use its permission. Do this in a network that you trust.`,
		Example: "  agentsite grant phone --name anna\n  agentsite grant phone 'read *, set lamp max 10m' --until 30d\n" +
			"  agentsite grant phone 'read *, set *, stop, use approve' --name anna",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.TokenUntil(until)
			if err != nil {
				return err
			}
			words := cmp.Or(strings.Join(args, ""), ownerclient.PhoneWords)
			if _, err := access.ParsePermissions(words); err != nil {
				return usagef("%v", err)
			}
			if u, err := url.Parse("https://" + at); at != "" && (err != nil || u.Host != at || u.Hostname() == "") {
				return usagef("--at takes a name of the site, with a port if that is not 443, such as garden.example.org")
			}
			return a.asOwner(func(ctx context.Context, s *session, args []string) error {
				g, err := s.grantPhone(ctx, name, words, end, byAddress, at)
				if err != nil {
					return err
				}
				if len(args) > 0 {
					s.warnOfUnmatched(ctx, words)
				}
				return a.print(g, "%s", g.To)
			})(cmd, args)
		},
	}
	untilFlag(cmd, &until, ownerclient.PhoneUntil)
	nameFlag(cmd, &name, "a name for the phone (default that of its browser)")
	cmd.Flags().BoolVar(&byAddress, "by-address", false, "for a phone that does not find names that end in .local")
	cmd.Flags().StringVar(&at, "at", "", "a name of the site whose certificate the phone's browser trusts")
	return cmd
}

// grantPhone grants a permission to the key of the phone that shows a code, once the person at the terminal
// says that it is theirs.
func (s *session) grantPhone(ctx context.Context, name, words string, end time.Time, byAddress bool, at string) (
	none grantResult, _ error) {
	all, err := s.access(ctx)
	if err != nil {
		return none, err
	}
	a := s.app
	show := func(link string) error {
		if len(all.Grants) == 0 && !end.IsZero() {
			s.warnOfClock(all)
		}
		fmt.Fprint(a.errs, qr.Color(qr.Draw(link)))
		a.note("open this with the phone, within two minutes; its browser warns of the certificate:")
		fmt.Fprintln(a.errs, "  "+clean(link))
		return nil
	}
	var called string
	ask := func(ctx context.Context, key ownerclient.PhoneKey) error {
		called = key.Name
		asks := newConsent(a.errs)
		go asks.read(a.in)
		says := fmt.Sprintf("\nA browser showed the code. Compare what it shows:\n\n  %s\n\n"+
			"Its key would be allowed to %s, %s. It is called %s.\n", key.Letters, clean(words), ends(end), clean(key.Name))
		if asks.ask(ctx, says, "exactly this browser") != nil {
			return errors.New("nobody pressed Enter: nothing is granted")
		}
		return nil
	}
	signed, did, text, err := s.Owner.SignPhone(ctx, all, ownerclient.Phone{
		Name: name, Words: words, Until: end, ByAddress: byAddress, At: at, Key: peer.OwnerKey, Show: show, Confirm: ask,
	})
	if err != nil {
		return none, a.unreached(err)
	}
	_, err = callOwner(ctx, s, acts.GrantAct, signed)
	return grantResult{did, called, words, end, text}, err
}
