//! Which addresses a page may be fetched from: those of the public Internet, and what a person named.
//!
//! A page that a model asks for may be one that somebody else made it ask for. So it must not reach what is reachable
//! from this machine alone: the sockets on it, its network, the metadata services of clouds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// The hosts a person named, in lower case.
#[derive(Debug, Clone, Default)]
pub(super) struct Named(Vec<String>);

impl Named {
    /// As the configuration has them.
    pub(super) fn of(hosts: &[String]) -> Self {
        Self(hosts.iter().map(|host| host.trim().to_lowercase()).collect())
    }

    /// Whether a person named the host of this address, with any port or this one.
    pub(super) fn has(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let host = host.to_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        self.0.iter().any(|named| *named == host || Some(named) == with_port.as_ref())
    }
}

/// Whether an address belongs to the public Internet. Ranges are those of the special-purpose registries of IANA; what
/// carries an IPv4 address inside is as public as that.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        // shared by carriers, 100.64.0.0/10
        || (a == 100 && (b & 0xc0) == 64)
        // protocol assignments and the relays of 6to4
        || (a == 192 && ((b == 0 && c == 0) || (b == 88 && c == 99)))
        // benchmarks
        || (a == 198 && (b & 0xfe) == 18)
        // reserved
        || a >= 240;
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match (s0, s1) {
        // translated to IPv4 (NAT64)
        (0x64, 0xff9b) => [s2, s3, s4, s5] == [0; 4] && is_public_v4(v4(s6, s7)),
        // 6to4
        (0x2002, _) => is_public_v4(v4(s1, s2)),
        // tunnels, identifiers, benchmarks, documentation
        (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => false,
        // all that is assigned as global unicast
        _ => (s0 & 0xe000) == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let check = |address: &str, public: bool| {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        };
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "2606:4700::1111",
            "2400:cb00::1",
        ] {
            check(public, true);
        }
        for private in [
            "127.0.0.1",
            "127.255.0.3",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "3fff::1",
            "100::1",
            "5f00::1",
        ] {
            check(private, false);
        }
        check("2002:101:101::", true);
        check("64:ff9b::101:101", true);
        check("::ffff:1.1.1.1", true);
    }

    #[test]
    fn a_person_names_hosts_with_or_without_a_port() {
        let named = Named::of(&["Wiki.LAN".into(), "127.0.0.1:8080".into(), "[::1]".into()]);
        let check = |url: &str, has: bool| assert_eq!(named.has(&Url::parse(url).unwrap()), has, "{url}");
        check("http://wiki.lan/x", true);
        check("https://WIKI.lan:8443/", true);
        check("http://127.0.0.1:8080/", true);
        check("http://127.0.0.1/", false);
        check("http://[::1]:9/", true);
        check("http://evil.wiki.lan/", false);
        check("http://wiki.lan.evil/", false);
    }
}
