//! Tokens of the dashboard and the admin API: `ADMIN_TOKEN` and `ADMIN_TOKENS`.

use std::env;
use std::hash::{BuildHasher as _, RandomState};

use tollgate::admin::{Admin, AdminRole};

use crate::common;

/// Tokens from the environment.
pub(crate) struct AdminTokens {
    /// Token without a name, which may change everything.
    shared: Option<String>,
    /// Whether the shared token was generated for this run.
    is_random: bool,
    named: Vec<(String, AdminRole, String)>,
}

impl AdminTokens {
    /// Reads both variables. If neither is set, generates a shared token.
    pub(crate) fn from_env() -> Self {
        let allowed = "name:role:secret, separated by commas; role is read or write; secret has at \
                       least 8 visible ASCII characters, no comma and no space; names and secrets \
                       differ";
        let named = common::setting("ADMIN_TOKENS", "", allowed, parse_tokens);
        let is_random = env::var_os("ADMIN_TOKEN").is_none() && named.is_empty();
        // The keys of `RandomState` are random.
        let digits = || RandomState::new().hash_one("ADMIN_TOKEN");
        let random = format!("{:016x}{:016x}", digits(), digits());
        let allowed = "at least 8 visible ASCII characters, without spaces";
        let is_wanted = is_random || env::var_os("ADMIN_TOKEN").is_some();
        let shared = is_wanted.then(|| {
            common::setting("ADMIN_TOKEN", &random, allowed, |text| {
                is_secret(text).then(|| text.to_owned())
            })
        });
        // Audit events could not name the operator.
        if named
            .iter()
            .any(|(_, _, secret)| shared.as_ref() == Some(secret))
        {
            let allowed = "other secrets than that of ADMIN_TOKEN";
            common::refuse("ADMIN_TOKENS", "", allowed);
        }
        Self {
            shared,
            is_random,
            named,
        }
    }

    /// Returns the generated token, which is printed at the start.
    pub(crate) fn random(&self) -> Option<&str> {
        self.shared.as_deref().filter(|_| self.is_random)
    }

    /// Adds all tokens to the admin API.
    pub(crate) fn add_to(&self, mut admin: Admin) -> Admin {
        if let Some(secret) = &self.shared {
            admin = admin.shared_token(secret);
        }
        for (name, role, secret) in &self.named {
            admin = admin.token(name, *role, secret);
        }
        admin
    }
}

fn is_secret(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn parse_tokens(text: &str) -> Option<Vec<(String, AdminRole, String)>> {
    let mut tokens: Vec<(String, AdminRole, String)> = Vec::new();
    for entry in text.split(',').filter(|entry| !entry.is_empty()) {
        let (name, rest) = entry.trim().split_once(':')?;
        let (role, secret) = rest.split_once(':')?;
        let role = match role {
            "read" => AdminRole::Read,
            "write" => AdminRole::Write,
            _ => return None,
        };
        let is_new = tokens
            .iter()
            .all(|(other, _, used)| other != name && used != secret);
        let is_name = (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b));
        if !is_new || !is_name || !is_secret(secret) {
            return None;
        }
        tokens.push((name.to_owned(), role, secret.to_owned()));
    }
    Some(tokens)
}
