//! Keys and secrets that `[identity.jwt]` names.

use super::{PolicyReader, quoted_list};
use crate::config::problem::ConfigProblem;
use crate::config::read_file::read_regular_file;
use crate::config::redact::{is_secret, is_variable_name};
use crate::config::tree::Setting;
use crate::identity::JwtKeys;

/// Keys of the table that name a key or a secret.
const SOURCES: [&str; 4] = ["secret_env", "secret_file", "public_key_file", "jwks_file"];

impl PolicyReader<'_> {
    /// Reads all keys that the table names. Returns the problems if one of them cannot be read.
    pub(super) fn jwt_keys(&self, table: &Setting<'_>) -> Result<JwtKeys, Vec<ConfigProblem>> {
        let named: Vec<(&str, Setting<'_>)> = SOURCES
            .into_iter()
            .filter_map(|key| Some((key, table.get(key)?)))
            .collect();
        if named.is_empty() {
            // A secret in the file was reported as an unknown key.
            if table.entries().any(|(key, _)| is_secret(&key.name)) {
                return Err(Vec::new());
            }
            let problem = ConfigProblem::at(table, "no key to verify tokens with")
                .with_expected(format!("one of {}", quoted_list(&SOURCES)));
            return Err(vec![problem]);
        }
        if !self.context.with_keys {
            return Ok(JwtKeys::none());
        }
        let mut all = Ok(JwtKeys::none());
        for (key, value) in named {
            let keys = value.text().map(|name| self.read_key(key, name, &value));
            all = match (all, keys) {
                (Ok(all), Some(Ok(keys))) => Ok(all.and(keys)),
                (Ok(_), Some(Err(problem))) => Err(vec![*problem]),
                // A value of the wrong kind was reported by the check.
                (Ok(_), None) => Err(Vec::new()),
                (Err(mut problems), keys) => {
                    problems.extend(keys.and_then(Result::err).map(|problem| *problem));
                    Err(problems)
                }
            };
        }
        all
    }

    fn read_key(
        &self,
        key: &str,
        name: &str,
        value: &Setting<'_>,
    ) -> Result<JwtKeys, Box<ConfigProblem>> {
        let keys = match key {
            "secret_env" => JwtKeys::secret(self.secret(name, value)?),
            "secret_file" => JwtKeys::secret(self.file(name, value)?.trim_ascii_end()),
            "public_key_file" => JwtKeys::pem(self.file(name, value)?),
            _ => JwtKeys::jwks(self.file(name, value)?),
        };
        // These errors contain no part of a key.
        keys.map_err(|error| {
            let message = format!("invalid {}: {}", error.field(), error.value());
            Box::new(ConfigProblem::at(value, message).with_expected(error.expected()))
        })
    }

    fn secret(&self, name: &str, value: &Setting<'_>) -> Result<Vec<u8>, Box<ConfigProblem>> {
        if let Some(secret) = self.context.variable(name) {
            return Ok(secret.into_encoded_bytes());
        }
        Err(Box::new(if is_variable_name(name) {
            ConfigProblem::at(value, format!("the variable `{name}` is not set"))
                .with_found(name)
                .with_expected("an environment variable with the secret")
        } else {
            // The value may be the secret itself, so the message does not contain it.
            ConfigProblem::at(value, "this is not the name of a variable")
                .with_expected("a name in capitals such as `JWT_SECRET`")
                .with_help(Some(
                    "put the secret into a variable, and the variable's name here".to_owned(),
                ))
        }))
    }

    fn file(&self, name: &str, value: &Setting<'_>) -> Result<Vec<u8>, Box<ConfigProblem>> {
        let path = self.context.base.join(name);
        read_regular_file(&path).map_err(|error| {
            let problem = ConfigProblem::at(value, format!("`{name}`: {error}")).with_found(name);
            let problem = problem.with_expected("a file, beside the policy or with its whole path");
            Box::new(problem.with_help(error.help()))
        })
    }
}
