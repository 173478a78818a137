package site

import (
	"context"
	"fmt"
	"net/url"

	"agentsite/node/state"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
)

// asOwner calls the owner's methods of the site that runs from a folder.
func asOwner(f state.Folder, do func(*ownerclient.Client) error) error {
	c, err := Dial(Target{Folder: f})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c.Owner)
}

// checkListens changes a URL's host to that at which the site that runs from the folder serves
// plain HTTP, which it asks through the site's own socket. It fails where that is another:
// then somebody else may listen there, who is not to be sent the folder's token.
func checkListens(f state.Folder, u *url.URL) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialPatience)
	defer cancel()
	var all owner.Routes
	err := asOwner(f, func(c *ownerclient.Client) (err error) { all, err = c.Routes(ctx); return err })
	for _, c := range all.Carriers {
		at, err := url.Parse(c.Address)
		if err == nil && c.Kind == owner.HTTPCarrier && at.Port() == u.Port() && (at.Host == u.Host || u.Hostname() == "localhost") {
			u.Host = at.Host
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the site that runs from %s listens elsewhere", f)
	}
	return &url.Error{Op: "dial", URL: u.String(), Err: fmt.Errorf("%w, and its token is for nobody else (--token-file names another)", err)}
}
