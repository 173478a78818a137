package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/homepage"
	"agentsite/cmd/internal/peer"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/web"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// linkTimeout is short: the browser is opened at once.
const linkTimeout = 2 * time.Minute

func (a *app) openCommand() *cobra.Command {
	var port uint16
	var noBrowser bool
	cmd := &cobra.Command{
		Use: "open", GroupID: groupEveryday, Args: noArgs,
		Short: "Look at your sites and move their outputs, in a browser",
		Long: `Open a page in your browser that shows all sites that you own or may use, and the site on
this machine. The command serves the page, to this machine only, and calls the sites with
your key, until Ctrl-C. The link that it prints works once, within two minutes; Enter prints
another.

What only an owner may do, such as approving a call, the page asks here: it is done when you
press Enter, or confirm it in the page by a passkey that you registered there. Nobody can do it
by the page alone, such as a program that drives your browser.

Other users of this machine can see the link while the browser starts. With --no-browser
you copy it yourself.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.url != "" || a.site != "" || a.peer != "" || a.as != "" {
				return usagef("open shows all your sites: leave out --url, --site, --peer and --as")
			}
			return a.openPage(cmd.Context(), int(port), !noBrowser)
		},
	}
	cmd.Flags().Uint16Var(&port, "port", 0,
		"the port on this machine, at which the address stays the same (default: a free one)")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the link")
	return cmd
}

// openPage serves the page of the user's sites until ctx ends.
func (a *app) openPage(ctx context.Context, port int, browser bool) error {
	folder, err := a.siteFolder()
	if err != nil {
		return err
	}
	if demo := state.RunningDemo(); a.data == "" && demo != "" && !folder.Running() {
		folder = demo
	}
	sites, user, err := peer.NewOwnSites(folder, version)
	if err != nil {
		return err
	}
	defer sites.Close()
	if len(sites.List()) == 0 {
		a.note("you know no site, and none runs here: claim one in the page, or try agentsite demo")
	}
	name, err := pageName(port)
	if err != nil {
		return err
	}
	listeners, at, err := listenLocal(port, name)
	if err != nil {
		return err
	}
	defer logTo(a.errs, slog.LevelWarn)()
	asks := newConsent(a.out)
	person, err := peer.User()
	if err != nil {
		return err
	}
	passkeys := person.Passkeys()
	home := homepage.New(homepage.Options{
		User: user, Key: peer.OwnerKey, List: sites.List, Confirm: asks.confirm, Origin: at, Passkeys: &passkeys,
		Boards: &boards{a, peer.Near{Version: version}},
		Hosts:  append(web.AllowedHosts(listeners[0].Addr(), []string{"localhost"}), strings.TrimPrefix(at, "http://")),
	})
	link := func() string { return home.Link(at, linkTimeout) }
	asks.idle = func() { a.say("  %s", link()) }
	a.tell("The page of your sites, until Ctrl-C. This link works once, within two minutes; Enter prints another:")
	first := link()
	if err := a.say("  %s", first); err != nil {
		return err
	}
	go asks.read(a.in) // a terminal's read does not end
	if browser {
		openBrowser(first)
	}
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, home.Close)() // a question that waits is not answered by an Enter after Ctrl-C
	for _, ln := range listeners {
		group.Go(func() error { return web.Serve(ctx, ln, home.Handler) })
	}
	return group.Wait()
}

// boards claims sites for the page. What only the person may know is said at the terminal.
type boards struct {
	app  *app
	near peer.Near
}

func (b *boards) Near(ctx context.Context) ([]homepage.Board, error) {
	found, err := b.near.Search(ctx)
	all := make([]homepage.Board, len(found))
	for i, f := range found {
		all[i] = homepage.Board{Name: f.Name, DID: f.DID}
	}
	return all, err
}

func (b *boards) Address(did, words string) (address, key string, err error) {
	i, err := b.near.Invitation(did, words)
	return i.String(), i.Site.String(), err
}

func (b *boards) Claim(ctx context.Context, address string) (name string, err error) {
	user, err := peer.User()
	if err != nil {
		return "", err
	}
	k, err := b.app.claim(ctx, user, address, "")
	return k.Name, err
}

// pageName returns the name of the page's host at a port, 0 for any. Another program that had the port may have
// left a service worker in the browser, which answers in place of the page and reads the link: no other program
// knew the name. With a port, it is the same each time, so that the browser keeps what it noted.
func pageName(port int) (string, error) {
	if runtime.GOOS == "darwin" { // whose Safari knows no such names
		return "localhost", nil
	}
	key := identity.New()
	if port != 0 {
		own, err := peer.OwnerKey()
		if err != nil {
			return "", err
		}
		key = own.Derive("page at port " + strconv.Itoa(port))
	}
	return key.ID().Short() + "." + web.PageHost, nil
}

// listenLocal listens at a port of both loopback addresses, 0 for any, and returns the URL for browsers with that
// name. A browser may try either address for a name: at none of them may another program wait for the link.
func listenLocal(port int, name string) (all []net.Listener, url string, err error) {
	for range 8 { // a port may be free at one address only
		var four, six net.Listener
		if four, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			return nil, "", fmt.Errorf("the page cannot listen: %w; choose another --port", err)
		}
		got := four.Addr().(*net.TCPAddr).Port
		url = "http://" + net.JoinHostPort(name, strconv.Itoa(got))
		if six, err = net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(got))); err == nil {
			return []net.Listener{four, six}, url, nil
		}
		if !hasAddress(net.IPv6loopback) { // nobody else listens there either
			return []net.Listener{four}, url, nil
		}
		four.Close()
		if port != 0 {
			break
		}
	}
	return nil, "", fmt.Errorf("the page cannot listen: %w; choose another --port", err)
}

// hasAddress reports whether this machine has an address.
func hasAddress(ip net.IP) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(ip)
	})
}

// openBrowser opens a URL in the user's browser, where there is a display. It is printed anyway.
func openBrowser(url string) {
	program := []string{"xdg-open"}
	switch {
	case runtime.GOOS == "darwin":
		program = []string{"open"}
	case runtime.GOOS == "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	cmd := exec.Command(program[0], append(program[1:], url)...)
	detach(cmd)
	if cmd.Start() == nil {
		go cmd.Wait()
	}
}
