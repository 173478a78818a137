package main

import (
	"context"
	"fmt"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/bundle"
	"agentsite/node/imports"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// readBundle reads and verifies a bundle's file, or fetches it by its hash from a realm.
func readBundle(ctx context.Context, name, realm string) (text []byte, b *bundle.Bundle, err error) {
	if text, err = bundleText(ctx, name, realm); err != nil {
		return nil, nil, err
	}
	if b, err = bundle.Open(text); err != nil {
		return nil, nil, usagef("%s is refused: %w", name, err)
	}
	return text, b, nil
}

// completeBundle completes to a bundle's file.
func completeBundle(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bundle"}, cobra.ShellCompDirectiveFilterFileExt
}

func bundleText(ctx context.Context, name, realm string) ([]byte, error) {
	if !bundle.IsFileID(name) {
		if realm != "" {
			return nil, usagef("--realm is for a bundle by its hash, sha256:…")
		}
		text, err := state.ReadUntrusted(name, bundle.MaxBytes)
		if err == nil && text == nil {
			err = fmt.Errorf("there is no file %s", name)
		}
		if err != nil {
			return nil, state.Mistake{Err: err}
		}
		return text, nil
	}
	id, err := bundle.ParseFileID(name)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	user, err := peer.User()
	if err != nil {
		return nil, err
	}
	realms, err := user.Realms().SearchRealms(realm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return peer.FetchBundle(ctx, realms, id, version)
}

func (a *app) shareAgentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "share [FILE]", Short: "Let members of the site's realm fetch a bundle by its hash", Args: optional("FILE"),
		Long: `Let members of the site's realm fetch a bundle, by the hash that the command prints. Give that
hash to them. Whoever has it and the realm's secret gets the file, and nobody else does.
Without FILE the command lists what the site shares.`,
		Example: "  agentsite agents share frost.bundle\n  agentsite agents share",
	}
	cmd.ValidArgsFunction = completeBundle
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			all, err := callOwner(ctx, s, acts.SharedAgentsAct, acts.None{})
			if err != nil {
				return err
			}
			return printList(a, all.Shared, "this site shares no bundle", []string{"NAME", "KIND", "AUTHOR", "HASH"}, func(b imports.SharedBundle) []string {
				return []string{b.Name, b.Kind, b.Author, b.ID}
			})
		}
		text, b, err := readBundle(ctx, args[0], "")
		if err != nil {
			return err
		}
		if _, err := callOwner(ctx, s, acts.ShareAgentAct, imports.Sharing{Bundle: text}); err != nil {
			return err
		}
		id := bundle.IDOf(text).String()
		return a.print(imports.SharedBundle{ID: id, Name: b.Name, Kind: b.Kind, Author: b.Author.String()}, "%s is shared with the realm. Members import it: agentsite agents import %s", b.Name, id)
	})
	return cmd
}

func (a *app) unshareAgentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unshare sha256:…", Short: "End the sharing of a bundle", Args: exactly("sha256:…"),
		Example: "  agentsite agents unshare sha256:9f86d081…",
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		if _, err := callOwner(ctx, s, acts.UnshareAgentAct, acts.Name{Name: args[0]}); err != nil {
			return err
		}
		return a.print(struct {
			Unshared string `json:"unshared"`
		}{args[0]}, "%s is shared no more", args[0])
	})
	return cmd
}
