//! Callers known by a token: algorithms, keys, claims.

use std::time::Duration;

use super::PolicyReader;
use crate::config::problem::{ConfigProblem, Told};
use crate::config::redact::{is_secret, is_variable_name};
use crate::config::source::{read_bytes, why};
use crate::config::tree::Setting;
use crate::error::ValidationError;
use crate::identity::{Jwt, JwtAlgorithm, JwtBuilder, JwtKeys, KeySet};
use crate::quota::Window;

/// What names the keys.
const KEYS: [&str; 4] = ["secret_env", "secret_file", "public_key_file", "jwks_file"];

impl PolicyReader<'_> {
    pub(super) fn jwt(&mut self, setting: &Setting<'_>) -> Option<Jwt> {
        let list = setting.get("algorithms");
        let items = list.iter().flat_map(Setting::items);
        let algorithms: Vec<JwtAlgorithm> =
            items.filter_map(|item| item.text()?.parse().ok()).collect();
        let keys = self.keys(setting);
        let settings = self.jwt_settings(setting);
        if algorithms.is_empty() {
            self.no_algorithm(list.as_ref()?);
            return None;
        }
        let mut builder = Jwt::builder().algorithms(algorithms);
        for apply in settings {
            builder = apply(builder);
        }
        let key_set = KeySet::new(keys?);
        let built = builder.key_set(&key_set).build();
        // All that is left to be wrong is which algorithms go with the keys.
        let at = list.as_ref().filter(|_| built.is_err());
        self.report.note(at.unwrap_or(setting), built)
    }

    /// An empty list. If there is something in it, the check has told what is wrong with that.
    fn no_algorithm(&mut self, list: &Setting<'_>) {
        if list.items().next().is_none() && list.text().is_none() {
            let expected = "the algorithms to accept, such as RS256";
            let none = ValidationError::new("JWT algorithms", "none", expected);
            self.report.push(ConfigProblem::refused(list, &none));
        }
    }

    /// Everything but algorithms and keys, each checked by itself, so that all that is wrong
    /// is told.
    fn jwt_settings<'s>(&mut self, setting: &Setting<'s>) -> Vec<Apply<'s>> {
        let mut settings: Vec<Apply<'s>> = Vec::new();
        let mut add = |setting: &Setting<'s>, apply: Apply<'s>| {
            let harmless = Jwt::builder()
                .algorithms([JwtAlgorithm::Hs256])
                .key_set(&KeySet::new(JwtKeys::none()));
            if self.report.note(setting, apply(harmless).build()).is_some() {
                settings.push(apply);
            }
        };
        let texts: [(&str, Set); 7] = [
            ("issuer", |jwt, text| jwt.issuer(text)),
            ("audience", |jwt, text| jwt.audience(text)),
            ("cookie", |jwt, text| jwt.cookie(text)),
            ("user", |jwt, text| jwt.user(text)),
            ("tier", |jwt, text| jwt.tier(text)),
            ("tenant", |jwt, text| jwt.tenant(text)),
            ("roles", |jwt, text| jwt.roles(text)),
        ];
        for (key, set) in texts {
            for item in setting.get(key).iter().flat_map(Setting::one_or_more) {
                if let Some(text) = item.text() {
                    add(&item, Box::new(move |jwt| set(jwt, text)));
                }
            }
        }
        let dimensions = setting.get("dimensions");
        for (name, claim) in dimensions.iter().flat_map(Setting::entries) {
            if let Some(path) = claim.text() {
                add(&claim, Box::new(move |jwt| jwt.dimension(&name.name, path)));
            }
        }
        if let Some(remember) = setting.get("remember")
            && let Some(tokens) = remember.whole()
        {
            let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
            add(&remember, Box::new(move |jwt| jwt.remember(tokens)));
        }
        if let Some(size) = setting.get("max_token_bytes")
            && let Some(bytes) = size.whole()
        {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            add(&size, Box::new(move |jwt| jwt.max_token_bytes(bytes)));
        }
        if let Some(leeway) = setting.get("leeway")
            && let Some(text) = leeway.text()
        {
            match duration(text) {
                Ok(length) => add(&leeway, Box::new(move |jwt| jwt.leeway(length))),
                Err(wrong) => self.report.push(ConfigProblem::refused(&leeway, &wrong)),
            }
        }
        settings
    }

    /// All keys that the file names, unless one of them is not to be had.
    fn keys(&mut self, setting: &Setting<'_>) -> Option<JwtKeys> {
        let named: Vec<(&str, Setting<'_>)> = KEYS
            .into_iter()
            .filter_map(|key| Some((key, setting.get(key)?)))
            .collect();
        // A secret in the file is another problem, which the check has told.
        let misplaced = setting.entries().any(|(key, _)| is_secret(&key.name));
        if named.is_empty() && misplaced {
            return None;
        }
        if named.is_empty() {
            self.report.push(ConfigProblem::new(Told {
                path: setting.path.clone(),
                message: "no key to verify tokens with".to_owned(),
                expected: Some(format!("one of {}", crate::config::shape::one_of(&KEYS))),
                span: Some(setting.node.span.clone()),
                ..Told::default()
            }));
            return None;
        }
        if !self.context.with_keys {
            return Some(JwtKeys::none());
        }
        let mut all = Some(JwtKeys::none());
        for (key, value) in named {
            let name = value.text();
            let keys = name.map(|name| self.key(key, name));
            all = match (all, keys) {
                (Some(all), Some(Ok(keys))) => Some(all.and(keys)),
                (_, Some(Err(problem))) => {
                    self.report.push(ConfigProblem::new(Told {
                        path: value.path.clone(),
                        span: Some(value.node.span.clone()),
                        ..*problem
                    }));
                    None
                }
                _ => None,
            };
        }
        all
    }

    fn key(&self, key: &str, name: &str) -> Result<JwtKeys, Box<Told>> {
        let read = match key {
            "secret_env" => JwtKeys::secret(self.secret(name)?),
            "secret_file" => JwtKeys::secret(self.file(name)?.trim_ascii_end()),
            "public_key_file" => JwtKeys::pem(self.file(name)?),
            _ => JwtKeys::jwks(self.file(name)?),
        };
        // The model shows no part of a key.
        read.map_err(|wrong| {
            Box::new(Told {
                message: format!("invalid {}: {}", wrong.field(), wrong.value()),
                expected: Some(wrong.expected().to_owned()),
                ..Told::default()
            })
        })
    }

    /// The secret in a variable.
    fn secret(&self, name: &str) -> Result<Vec<u8>, Box<Told>> {
        if let Some(secret) = self.context.variable(name) {
            return Ok(secret.into_encoded_bytes());
        }
        Err(Box::new(if is_variable_name(name) {
            Told {
                message: format!("the variable `{name}` is not set"),
                found: Some(name.to_owned()),
                expected: Some("a variable of the environment that holds the secret".to_owned()),
                ..Told::default()
            }
        } else {
            // It may be the secret itself, so it is not shown.
            Told {
                message: "this is not the name of a variable".to_owned(),
                expected: Some("a name in capitals such as `JWT_SECRET`".to_owned()),
                help: Some(
                    "put the secret into a variable, and the variable's name here".to_owned(),
                ),
                ..Told::default()
            }
        }))
    }

    /// What is in a file that the policy names.
    fn file(&self, name: &str) -> Result<Vec<u8>, Box<Told>> {
        let path = self.context.base.join(name);
        read_bytes(&path).map_err(|error| {
            Box::new(Told {
                message: format!("`{}`: {}", name, why(&error)),
                found: Some(name.to_owned()),
                expected: Some("a file, beside the policy or with its whole path".to_owned()),
                ..Told::default()
            })
        })
    }
}

/// Sets a text.
type Set = fn(JwtBuilder, &str) -> JwtBuilder;

/// Sets something that the file says.
type Apply<'s> = Box<dyn Fn(JwtBuilder) -> JwtBuilder + 's>;

fn duration(text: &str) -> Result<Duration, ValidationError> {
    if matches!(text.trim(), "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    let read: Result<Window, ValidationError> = text.parse();
    read.map(Window::duration)
        .map_err(|_| ValidationError::new("length of time", text, "such as `30s` or `2 minutes`"))
}
