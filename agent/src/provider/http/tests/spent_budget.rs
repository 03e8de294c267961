//! A server that was asked again often enough of late is not asked again, by whichever conversation.

use super::*;

#[tokio::test]
async fn c7_19_conversations_share_what_may_be_asked_again() {
    let overloaded = || head("503 No", "retry-after: 0\r\n", "{\"error\":{\"message\":\"busy\"}}");
    let folder = tempfile::tempdir().unwrap();
    // 20 may be asked again: ten questions are asked three times each, and the eleventh once
    let server = serve((0..31).map(|_| overloaded()).collect());
    let mut told = Vec::new();
    for _ in 0..11 {
        // each of them is another life
        let mut provider = provider(&server.base_url, &[]);
        provider.budget = Budget::shared(folder.path());
        provider.patience.wait_first = Duration::from_millis(1);
        told.push(ask(&provider).await.1.unwrap_err());
    }
    assert_eq!(server.requests().await.len(), 31);
    assert!(told.iter().all(|error| error.to_string().contains("busy")), "{told:?}");
}
