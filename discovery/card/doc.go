// Package card is a site's word about itself, asked of the site: its record and what it
// can do, for those of its realm.
package card
